"""`ssl`, without connections: the host connects and checks certificates.

A context can be made and configured, because packages do so before they send
anything. Everything that would encrypt, or that would use the plugin's own
certificates, raises an error.
"""

from __future__ import annotations

import enum
from typing import Any

from toolbay_guest import missing

_INSTEAD = "the host encrypts requests and checks certificates; send them with `urllib.request`, `requests` or `httpx`"
_CERTIFICATES = "the host sends the plugin's requests and checks certificates with those of its own system"


class TLSVersion(enum.IntEnum):
    MINIMUM_SUPPORTED = -2
    SSLv3 = 768
    TLSv1 = 769
    TLSv1_1 = 770
    TLSv1_2 = 771
    TLSv1_3 = 772
    MAXIMUM_SUPPORTED = -1


class VerifyMode(enum.IntEnum):
    CERT_NONE = 0
    CERT_OPTIONAL = 1
    CERT_REQUIRED = 2


class VerifyFlags(enum.IntFlag):
    VERIFY_DEFAULT = 0
    VERIFY_CRL_CHECK_LEAF = 4
    VERIFY_CRL_CHECK_CHAIN = 12
    VERIFY_X509_STRICT = 32
    VERIFY_X509_TRUSTED_FIRST = 32768
    VERIFY_X509_PARTIAL_CHAIN = 524288


class _SSLMethod(enum.IntEnum):
    PROTOCOL_TLS = 2
    PROTOCOL_SSLv23 = 2
    PROTOCOL_TLSv1 = 3
    PROTOCOL_TLSv1_1 = 4
    PROTOCOL_TLSv1_2 = 5
    PROTOCOL_TLS_CLIENT = 16
    PROTOCOL_TLS_SERVER = 17


class Options(enum.IntFlag):
    OP_NO_COMPRESSION = 0x20000
    OP_NO_TICKET = 0x4000
    OP_NO_RENEGOTIATION = 0x40000000
    OP_NO_SSLv2 = 0
    OP_NO_SSLv3 = 0x2000000
    OP_NO_TLSv1 = 0x4000000
    OP_NO_TLSv1_1 = 0x10000000
    OP_NO_TLSv1_2 = 0x8000000
    OP_NO_TLSv1_3 = 0x20000000
    OP_SINGLE_DH_USE = 0
    OP_SINGLE_ECDH_USE = 0
    OP_CIPHER_SERVER_PREFERENCE = 0x400000
    OP_IGNORE_UNEXPECTED_EOF = 0x80
    OP_LEGACY_SERVER_CONNECT = 4
    OP_ENABLE_KTLS = 8
    OP_ALL = 0x80000050


class SSLErrorNumber(enum.IntEnum):
    SSL_ERROR_SSL = 1
    SSL_ERROR_WANT_READ = 2
    SSL_ERROR_WANT_WRITE = 3
    SSL_ERROR_WANT_X509_LOOKUP = 4
    SSL_ERROR_SYSCALL = 5
    SSL_ERROR_ZERO_RETURN = 6
    SSL_ERROR_WANT_CONNECT = 7
    SSL_ERROR_EOF = 8
    SSL_ERROR_INVALID_ERROR_CODE = 10


class Purpose(enum.Enum):
    SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
    CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"


for _kind in (VerifyMode, VerifyFlags, _SSLMethod, Options, SSLErrorNumber):
    globals().update(_kind.__members__)


class SSLError(OSError):
    """An error of an encrypted connection."""

    library = ""
    reason = ""


class SSLZeroReturnError(SSLError):
    """The connection is closed."""


class SSLWantReadError(SSLError):
    """More data must be read."""


class SSLWantWriteError(SSLError):
    """More data must be written."""


class SSLSyscallError(SSLError):
    """The system reported an error."""


class SSLEOFError(SSLError):
    """The connection ended early."""


class SSLCertVerificationError(SSLError, ValueError):
    """A certificate is not valid."""


CertificateError = SSLCertVerificationError
socket_error = OSError

HAS_ALPN = HAS_SNI = HAS_ECDH = HAS_TLSv1_2 = HAS_TLSv1_3 = True
HAS_NEVER_CHECK_COMMON_NAME = True
HAS_NPN = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = HAS_PSK = False
# Packages warn of other libraries.
OPENSSL_VERSION = "OpenSSL 3.0.0 (of a component, which has none)"
OPENSSL_VERSION_INFO = (3, 0, 0, 0, 0)
OPENSSL_VERSION_NUMBER = 0x30000000
CHANNEL_BINDING_TYPES: list[str] = []
PEM_HEADER = "-----BEGIN CERTIFICATE-----"
PEM_FOOTER = "-----END CERTIFICATE-----"


class SSLContext:
    """Settings of connections that the plugin cannot make."""

    sslsocket_class: Any = None
    sslobject_class: Any = None

    def __init__(self, protocol: int | None = None) -> None:
        self.protocol = _SSLMethod.PROTOCOL_TLS if protocol is None else protocol
        self.verify_mode = VerifyMode.CERT_REQUIRED
        self.verify_flags = VerifyFlags.VERIFY_DEFAULT
        self.check_hostname = True
        self.hostname_checks_common_name = False
        self.options = Options.OP_ALL
        self.minimum_version = TLSVersion.MINIMUM_SUPPORTED
        self.maximum_version = TLSVersion.MAXIMUM_SUPPORTED
        self.post_handshake_auth = False
        self.keylog_filename: str | None = None
        self.sni_callback: Any = None
        self.security_level = 2

    # The certificates that the plugin trusts. The host has its own.

    def load_default_certs(self, purpose: Purpose = Purpose.SERVER_AUTH) -> None:
        """Does nothing: the host has its own certificates."""

    def set_default_verify_paths(self) -> None:
        """Does nothing: the host has its own certificates."""

    def load_verify_locations(self, cafile: Any = None, capath: Any = None, cadata: Any = None) -> None:
        """Does nothing: the host has its own certificates."""

    def set_ciphers(self, ciphers: str) -> None:
        """Does nothing: the host chooses."""

    def set_alpn_protocols(self, protocols: Any) -> None:
        """Does nothing: the host chooses."""

    def set_ecdh_curve(self, name: str) -> None:
        """Does nothing: the host chooses."""

    def get_ca_certs(self, binary_form: bool = False) -> list[Any]:
        return []

    def cert_store_stats(self) -> dict[str, int]:
        return {"x509": 0, "crl": 0, "x509_ca": 0}

    load_cert_chain = missing.function("ssl.SSLContext.load_cert_chain", _CERTIFICATES)
    load_dh_params = missing.function("ssl.SSLContext.load_dh_params", _INSTEAD)
    wrap_socket = missing.function("ssl.SSLContext.wrap_socket", _INSTEAD)
    wrap_bio = missing.function("ssl.SSLContext.wrap_bio", _INSTEAD)


SSLSocket = missing.kind("ssl.SSLSocket", _INSTEAD)
SSLObject = missing.kind("ssl.SSLObject", _INSTEAD)
SSLSession = missing.kind("ssl.SSLSession", _INSTEAD)
MemoryBIO = missing.kind("ssl.MemoryBIO", _INSTEAD)


def create_default_context(
    purpose: Purpose = Purpose.SERVER_AUTH, *, cafile: Any = None, capath: Any = None, cadata: Any = None
) -> SSLContext:
    return SSLContext(_SSLMethod.PROTOCOL_TLS_CLIENT)


def _create_unverified_context(*arguments: Any, **options: Any) -> SSLContext:
    context = SSLContext(_SSLMethod.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = VerifyMode.CERT_NONE
    return context


_create_default_https_context = create_default_context
_create_stdlib_context = _create_unverified_context

wrap_socket = missing.function("ssl.wrap_socket", _INSTEAD)
get_server_certificate = missing.function("ssl.get_server_certificate", _CERTIFICATES)
DER_cert_to_PEM_cert = missing.function("ssl.DER_cert_to_PEM_cert", _INSTEAD)
PEM_cert_to_DER_cert = missing.function("ssl.PEM_cert_to_DER_cert", _INSTEAD)
cert_time_to_seconds = missing.function("ssl.cert_time_to_seconds", _INSTEAD)
RAND_bytes = missing.function("ssl.RAND_bytes", "use `os.urandom`")


def RAND_status() -> bool:  # noqa: N802  The name in ssl.
    return True


def get_default_verify_paths() -> Any:
    missing.fail("ssl.get_default_verify_paths", _CERTIFICATES)
