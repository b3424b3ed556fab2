"""Certificates of the test's own, by openssl: an authority, and one certificate for every part of the cluster."""

import shutil
import subprocess
from pathlib import Path

OPENSSL = shutil.which("openssl")


def tls_environment(folder: Path) -> dict[str, str]:
    """Make them, and say what every process of the cluster must have in its environment, as a deployment would."""
    ca, key, cert = folder / "ca.pem", folder / "key.pem", folder / "cert.pem"
    new = ["req", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    openssl(*new, "-x509", "-subj", "/CN=tidemill test authority", "-keyout", folder / "ca.key", "-out", ca)
    openssl(*new, "-subj", "/CN=tidemill test", "-keyout", key, "-out", folder / "cert.csr")
    signed_by = ["-CA", ca, "-CAkey", folder / "ca.key", "-CAcreateserial"]
    openssl("x509", "-req", "-days", "2", "-in", folder / "cert.csr", *signed_by, "-out", cert)
    roles = ("SCHEDULER", "WORKER", "CLIENT")
    prefix = "DASK_DISTRIBUTED__COMM__"
    return {
        f"{prefix}TLS__CA_FILE": str(ca),
        f"{prefix}REQUIRE_ENCRYPTION": "True",
        f"{prefix}TIMEOUTS__TCP": "300s",
        **{f"{prefix}TLS__{role}__CERT": str(cert) for role in roles},
        **{f"{prefix}TLS__{role}__KEY": str(key) for role in roles},
    }


def openssl(*words: object) -> None:
    assert OPENSSL is not None
    subprocess.run([OPENSSL, *map(str, words)], check=True, capture_output=True, timeout=60)
