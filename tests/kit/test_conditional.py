import pytest

from app.kit.conditional import etag


def test_a_version_becomes_a_strong_tag():
    assert etag(7) == '"7"'
    assert etag('a"b') != etag('a"c')
    assert len(etag("\ud800" * 1000)) == 34


@pytest.mark.parametrize("value", ['"7"', 'W/"7"', '"1", "7"', 'W/"1" , W/"7"', "*", '"a,b", "7"'])
def test_a_known_version_is_not_sent_again(api, value):
    response = api("GET", "/shop/orders/7", headers={"if-none-match": value})
    assert response.status_code == 304
    assert response.headers["etag"] == '"7"'
    assert response.content == b""


@pytest.mark.parametrize("value", ['"8"', "7", '"77"', '"*"', "", '"7', "junk"])
def test_other_versions_are_sent(api, value):
    assert api("GET", "/shop/orders/7", headers={"if-none-match": value}).status_code == 200


def test_several_lines_are_one_list(api):
    lines = [("if-none-match", '"1"'), ("if-none-match", '"7"')]
    assert api("GET", "/shop/orders/7", headers=lines).status_code == 304
