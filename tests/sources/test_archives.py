"""What may be a source: archives that are what they seem are unpacked as they lie, all others are refused in words."""

import io
import stat
import sys
import warnings
import zipfile

import grimp
import pytest

from app.sources.archive import MAX_FILES, Unfit
from app.sources.names import ON_WORKERS, OURS
from app.sources.unpacking import unpack
from tests.sources.packing import DIST_INFO, encrypted, link, packed, renamed, special, wheel

LIMIT = 1 << 20


@pytest.fixture
def take(tmp_path):
    """Unpacks bytes; returns what is said of them and the files that are there then."""

    def take(content, name="package.zip", limit=LIMIT):
        path, folder = tmp_path / "sent", tmp_path / "package"
        path.write_bytes(content)
        folder.mkdir()
        facts = unpack(path, name, folder, limit)
        files = {str(each.relative_to(folder)): each.read_text() for each in folder.rglob("*") if each.is_file()}
        return facts, files

    return take


def test_a_zip_is_unpacked_as_it_lies(take):
    files = {"mill/__init__.py": "x = 1", "mill/deep/er.py": "", "wheel_of.py": "y = 2", "mill/words.txt": "ä"}
    facts, there = take(packed({"mill/": "", **files}))
    assert facts == {"format": "zip", "modules": ["mill", "wheel_of"]}
    assert there == files


def test_bytecode_and_what_packing_leaves_are_left_out(take):
    left = {
        "mill/__pycache__/a.cpython-311.pyc": "?",
        "mill/b.pyc": "?",
        "__MACOSX/mill/._a.py": "?",
        "mill/.DS_Store": "?",
    }
    facts, there = take(packed({"mill/a.py": "", **left, "mill.egg-info/PKG-INFO": "", "stone-1.dist-info/RECORD": ""}))
    assert facts == {"format": "zip", "modules": ["mill"]}
    assert list(there) == ["mill/a.py"]


@pytest.mark.parametrize("name", ["mill-1.2-py3-none-any.whl", "mill.zip"])
def test_of_a_wheel_its_modules_are_taken(take, name):
    data = {f"mill-1.2.data/{kind}/{kind}_part.py": "" for kind in ("purelib", "platlib", "scripts", "data", "headers")}
    facts, there = take(wheel({"mill/__init__.py": "", **data, "mill-1.2.dist-info/entry_points.txt": "[x]"}), name)
    assert facts == {"format": "wheel", "modules": ["mill", "platlib_part", "purelib_part"]}
    assert set(there) == {"mill/__init__.py", "purelib_part.py", "platlib_part.py", "mill-1.2.dist-info/METADATA"}


def test_nothing_of_it_is_run(take, tmp_path):
    ran = tmp_path / "ran"
    take(packed({"mill/__init__.py": f"open({str(ran)!r}, 'w')", "setup.py": f"open({str(ran)!r}, 'w')"}))
    assert not ran.exists()


GOOD = {"mill.py": "x = 1"}
REFUSED = {
    "no zip": (b"\x1f\x8b a tar", "not a zip"),
    "empty file": (b"", "not a zip"),
    "empty zip": (packed({}), "nothing to import"),
    "only data": (packed({"mill/words.txt": "", "rows.csv": ""}), "nothing to import"),
    "no identifier": (packed({"my-mill/a.py": "", "2.py": ""}), "nothing to import"),
    "not ascii": (packed({"mühle.py": "", "ｔorch.py": ""}), "nothing to import"),
    "cut short": (packed(GOOD)[:-30], "damaged"),
    "damaged": (packed({"mill.py": "x" * 999}, zipfile.ZIP_STORED).replace(b"xxx", b"yyy", 1), "damaged"),
    "names that differ": (packed(GOOD).replace(b"mill.py", b"kiln.py", 1), "damaged"),
    "upwards": (packed({"../mill.py": ""}), "leads out"),
    "upwards later": (packed({"a/../../mill.py": ""}), "leads out"),
    "here": (packed({"./mill.py": ""}), "leads out"),
    "absolute": (packed({"/etc/mill.py": ""}), "absolute"),
    "drive": (packed({"C:/mill.py": ""}), "absolute"),
    "backslash": (packed({"..\\mill.py": ""}), "backslash"),
    "empty part": (packed({"a//mill.py": ""}), "empty part"),
    "nul": (renamed(packed({"mill.py_x": ""}), b"mill.py_x", b"mill.py\0x"), "control character"),
    "line end": (packed({"mi\nll.py": ""}), "control character"),
    "long part": (packed({f"{'x' * 260}.py": ""}), "too long"),
    "long path": (packed({f"{'x/' * 520}y.py": ""}), "too long"),
    "deep": (packed({f"{'x/' * 30}y.py": ""}), "deeper than"),
    "link": (link(), "symbolic link"),
    "link folder": (special("mill/", stat.S_IFLNK), "symbolic link"),
    "pipe": (special("pipe", stat.S_IFIFO), "special file"),
    "device": (special("null", stat.S_IFCHR), "special file"),
    "folder by kind": (special("folder", stat.S_IFDIR), "says that it is a folder"),
    "encrypted": (encrypted(packed(GOOD)), "encrypted"),
    "bzip2": (packed(GOOD, zipfile.ZIP_BZIP2), "deflate"),
    "lzma": (packed(GOOD, zipfile.ZIP_LZMA), "deflate"),
    "compiled": (packed({**GOOD, "fast.cpython-311-x86_64-linux-gnu.so": ""}), "compiled"),
    "compiled library": (packed({**GOOD, "mill/libz.SO.1": ""}), "compiled"),
    "by case": (packed({"mill/A.py": "", "mill/a.py": ""}), "twice"),
    "by accent": (packed({**GOOD, "d/é": "", "d/e\u0301": ""}), "twice"),
    "file and folder": (packed({"mill.py": "", "mill.py/a.py": ""}), "as a file"),
    "module and package": (packed({"mill.py": "", "mill/a.py": ""}), "as a module and as a package"),
    "inside": (packed({"__init__.py": "", "a.py": ""}), "Pack the folder"),
    "project": (packed({"mill-main/pyproject.toml": "", "mill-main/src/mill/a.py": ""}), "pip wheel"),
    "project with src": (packed({"pyproject.toml": "", "src/mill/a.py": ""}), "pip wheel"),
    "no wheel": (packed(GOOD), "called a wheel"),
    "two wheels": (packed({**GOOD, **DIST_INFO, "b-1.dist-info/WHEEL": ""}), "2 wheels"),
    "data meets module": (wheel({"mill.py": "", "mill-1.2.data/purelib/mill.py": ""}), "twice"),
    "installed wheel": (packed({"mill.py": "", "Pydantic-9.dist-info/WHEEL": "", "Pydantic-9.dist-info/METADATA": ""}), "installed"),
    **{
        f"hides {name}": (packed({"mill.py": "", f"{name}/a.py": ""}), f"'{name}' would hide")
        for name in ("torch", "lightning", "json", "app", "workers", "sitecustomize", "__main__", "fastapi", "_ctypes")
    },
}  # fmt: skip


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_package_is_refused_in_words(take, tmp_path, content, words):
    with pytest.raises(Unfit, match=words):
        take(content, name="mill-1-py3-none-any.whl" if words == "called a wheel" else "mill.zip")
    assert {each.name for each in tmp_path.iterdir()} == {"sent", "package"}


def test_a_name_that_is_there_twice_is_refused(take):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("mill.py", "x = 1")
            archive.writestr("mill.py", "x = 2")
    with pytest.raises(Unfit, match=r"'mill\.py' twice\."):
        take(out.getvalue())


def test_too_many_files_are_refused(take):
    with pytest.raises(Unfit, match="entries"):
        take(packed({f"mill/{i}.py": "" for i in range(MAX_FILES + 1)}, zipfile.ZIP_STORED))


def test_a_bomb_goes_off_nowhere(take, tmp_path):
    """By its size, by its ratio, and where the archive lies about what comes out."""
    zeros = packed({"mill.py": "", "zeros": bytes(LIMIT)})
    with pytest.raises(Unfit, match=f"more than {LIMIT - 1:,} bytes"):
        take(zeros, limit=LIMIT - 1)
    assert sum(each.stat().st_size for each in (tmp_path / "package").iterdir()) < LIMIT
    (tmp_path / "package").rename(tmp_path / "before")
    with pytest.raises(Unfit, match="limit for one of its size"):
        take(packed({"mill.py": "", "zeros": bytes(17 << 20)}), limit=1 << 40)
    (tmp_path / "package").rename(tmp_path / "then")
    size = (LIMIT).to_bytes(4, "little")
    lying = zeros.replace(size, (10).to_bytes(4, "little"))
    assert lying != zeros
    with pytest.raises(Unfit, match="damaged"):
        take(lying)


def test_what_the_workers_import_cannot_be_hidden():
    """Also where the server's machine has none of it."""
    graph = grimp.build_graph("workers", include_external_packages=True)
    outside = {name.partition(".")[0] for name in graph.modules}
    assert outside - sys.stdlib_module_names <= ON_WORKERS | OURS
