"""What `urllib3_internals` reaches into is unchanged; the client's tests show that it works."""

import inspect

import requests
import urllib3
import urllib3.connection
import urllib3.response
from requests.adapters import HTTPAdapter

#: Look at `marketing_api/urllib3_internals.py` before raising these.
URLLIB3, REQUESTS = "2.8.", "2.34."


def test_the_versions_are_those_that_the_internals_were_written_for() -> None:
    assert urllib3.__version__.startswith(URLLIB3), (
        f"urllib3 {urllib3.__version__}: check marketing_api/urllib3_internals.py"
    )
    assert requests.__version__.startswith(REQUESTS), (
        f"requests {requests.__version__}: check marketing_api/urllib3_internals.py"
    )


def test_a_connection_has_the_steps_that_are_overridden() -> None:
    assert list(inspect.signature(urllib3.connection.HTTPConnection.putrequest).parameters)[:3] == [
        "self",
        "method",
        "url",
    ]
    for kind in (urllib3.connection.HTTPConnection, urllib3.connection.HTTPSConnection):
        assert callable(kind._new_conn)
        assert callable(kind.getresponse)
        assert kind.debuglevel == 0


def test_the_adapter_looks_its_pool_up_in_one_place() -> None:
    assert "get_connection_with_tls_context" in inspect.getsource(HTTPAdapter.send)


def test_a_pool_is_made_ready_and_used_as_the_adapter_does_it() -> None:
    assert "self.cert_verify(conn, request.url, verify, cert)" in inspect.getsource(HTTPAdapter.send)
    options = {"retries", "redirect", "assert_same_host", "timeout", "preload_content"}
    assert options <= inspect.signature(urllib3.HTTPConnectionPool.urlopen).parameters.keys()


def test_a_body_can_be_unpacked_piece_by_piece() -> None:
    assert "max_length" in inspect.signature(urllib3.response.MultiDecoder.decompress).parameters
    assert isinstance(urllib3.response.MultiDecoder.has_unconsumed_tail, property)


def test_certificates_are_taken_from_a_context_that_has_them() -> None:
    """And a proxy that is reached over TLS from its own."""
    source = inspect.getsource(urllib3.connection)
    assert "        context = ssl_context\n" in source
    assert "proxy_ssl_context = proxy_config.ssl_context" in source
    proxied = inspect.getsource(urllib3.HTTPConnectionPool.__init__)
    assert 'self.conn_kw["proxy_config"] = self.proxy_config' in proxied
    assert {"ca_certs", "ca_cert_dir"} <= inspect.signature(urllib3.HTTPSConnectionPool).parameters.keys()


def test_a_copy_of_a_pool_has_connections_of_its_own_when_its_queue_is_another() -> None:
    source = inspect.getsource(urllib3.HTTPConnectionPool.__init__)
    assert "self._new_pool_queue(maxsize)" in source
    assert "self.pool.put(None)" in source
