# SPDX-License-Identifier: Apache-2.0
"""How refusals of services are told: names of protocols, what was asked, and what the commonest answers mean."""

from __future__ import annotations

from typing import NamedTuple


class Protocol(NamedTuple):
    """How refusals of one kind of request are told."""

    name: str
    what: str  # is refused
    of: str  # `of` a user, `for` a file
    by_name: bool  # whether a refusal of one name stands although others succeed
    ports: tuple[int, ...]
    filter: str
    advice: str

    @property
    def unnamed(self) -> str:
        """What is refused before a request named it."""
        return "connections" if self.name in ("mail", "FTP", "POP3", "MySQL", "Microsoft SQL", "AMQP") else self.what


LOGIN = "See the log of {server} for this login, and try the same account from {client} with another program."
PROTOCOLS = {
    "LDAP bind": Protocol(
        "LDAP",
        "the bind",
        "of",
        True,
        (389, 3268),
        "ldap",
        LOGIN,
    ),
    "SMB negotiation": Protocol(
        "SMB",
        "to negotiate",
        "with",
        False,
        (445,),
        "smb2",
        "Compare the SMB versions that {client} and {server} allow.",
    ),
    "SMB login": Protocol(
        "SMB",
        "the login",
        "of",
        True,
        (445,),
        "smb2",
        "See the security log of {server} for this login: the account, its rights to log on from {client}, and the levels of "
        "NTLM and of signing that both require.",
    ),
    "SMB share": Protocol(
        "SMB", "the share", "", True, (445,), "smb2", "Check the name of the share on {server}, and who may use it."
    ),
    "Kerberos login": Protocol(
        "Kerberos",
        "the login",
        "of",
        True,
        (88,),
        "kerberos",
        "Compare the clocks of {client} and {server}, the account, and its keys (`klist`, `kinit -V`).",
    ),
    "Kerberos ticket": Protocol(
        "Kerberos",
        "a ticket",
        "for",
        True,
        (88,),
        "kerberos",
        "Check that this service principal is registered, once (`setspn -Q`), and that its account has keys of the wanted type.",
    ),
    "MySQL login": Protocol("MySQL", "the login", "of", True, (3306,), "mysql", LOGIN),
    "PostgreSQL login": Protocol(
        "PostgreSQL",
        "the login",
        "of",
        True,
        (5432, 6432),
        "pgsql",
        "See the log of {server} for {client}: who is admitted (pg_hba.conf), and how many (max_connections, a pool such as "
        "PgBouncer).",
    ),
    "Redis command": Protocol(
        "Redis", "commands", "of", False, (6379,), "tcp.port == 6379", "See the log of {server}."
    ),
    "MongoDB command": Protocol("MongoDB", "commands", "of", False, (27017,), "mongo", "See the log of {server}."),
    "SQL Server login": Protocol(
        "Microsoft SQL",
        "the login",
        "of",
        True,
        (1433,),
        "tds",
        "Read the error log of {server}: it has the state of this error, which says more than the client is told.",
    ),
    "Oracle connection": Protocol(
        "Oracle",
        "the connection",
        "to",
        True,
        (1521,),
        "tns",
        "Compare the service name or SID of {client} with `lsnrctl services` on {server}.",
    ),
    "AMQP connection": Protocol(
        "AMQP",
        "the connection",
        "of",
        False,
        (5672,),
        "amqp",
        "See the log of {server}: user, password, virtual host, and what the user may do there.",
    ),
    "SOCKS connection": Protocol(
        "SOCKS",
        "connections",
        "to",
        True,
        (1080,),
        "socks",
        "See the rules and the log of the proxy {server}, and whether it reaches these targets itself.",
    ),
    "RPC program": Protocol(
        "portmapper",
        "the port",
        "of",
        True,
        (111,),
        "portmap",
        "Start the service on {server} (`rpcinfo -p {server}` lists what runs); an NFS server without version 2 and 3 has "
        "none: mount with `vers=4`.",
    ),
    "Modbus request": Protocol(
        "Modbus",
        "requests",
        "with",
        True,
        (502,),
        "modbus",
        "Compare function, unit and address with the register map of {server}; behind a gateway, see whether the unit is there.",
    ),
    "RDP connection": Protocol(
        "RDP",
        "the connection",
        "of",
        False,
        (3389,),
        "tcp.port == 3389",
        "Let {client} use the security that {server} requires (NLA, TLS), or change it there.",
    ),
    "MQTT connection": Protocol("MQTT", "the connection", "of", True, (1883,), "mqtt", LOGIN),
    "SMTP command": Protocol(
        "mail", "mail", "at", True, (25, 587), "smtp", "Read the answer: it says what {server} wants of {client}."
    ),
    "POP3 command": Protocol("POP3", "the login", "at", False, (110,), "pop", LOGIN),
    "IMAP login": Protocol("IMAP", "the login", "of", True, (143,), "imap", LOGIN),
    "FTP command": Protocol("FTP", "a command", "at", True, (21,), "ftp", "See the log of {server} for {client}."),
    "TFTP read": Protocol(
        "TFTP",
        "the file",
        "",
        False,
        (69,),
        "tftp",
        "Check the file name and its rights on {server}, and the options of {client}.",
    ),
    "TFTP write": Protocol(
        "TFTP", "the file", "", False, (69,), "tftp", "Check whether {server} lets {client} write this file."
    ),
    "IKE negotiation": Protocol(
        "IPsec",
        "the IKE negotiation",
        "of",
        False,
        (500, 4500),
        "isakmp",
        "Compare the proposals (encryption, integrity, DH group, IKE version) of {client} with those of {server}, and whether it "
        "has a connection for this peer.",
    ),
    "IKE login": Protocol(
        "IPsec",
        "the login",
        "of",
        False,
        (500, 4500),
        "isakmp",
        "Compare identities and keys of {client} and {server}.",
    ),
    "NTP": Protocol("NTP", "the time", "of", False, (123,), "ntp", ""),
}

#: answers that are steps on the way
INTERMEDIATE = frozenset(
    (
        "STATUS_MORE_PROCESSING_REQUIRED",
        "saslBindInProgress",
        "KDC_ERR_PREAUTH_REQUIRED",
        "KRB_ERR_RESPONSE_TOO_BIG",
        "KDC_ERR_WRONG_REALM",
        "KDC_ERR_MORE_PREAUTH_DATA_REQUIRED",
        "COOKIE",
        "INVALID_KE_PAYLOAD",
        "resend",
    )
)
#: TFTP: the client, which only wanted the size, ends the transfer
ABORTED = "client: 0"
#: commands without which a client cannot go on; "": the server spoke first
NEEDED = {
    "SMTP command": ("", "MAIL", "RCPT", "DATA", "AUTH", "STARTTLS"),
    "POP3 command": ("", "USER", "PASS", "APOP"),
    "FTP command": ("", "USER", "PASS", "RETR", "STOR", "APPE", "LIST", "MLSD", "NLST", "PORT", "EPRT", "PASV", "EPSV"),
}
#: without it a client may go on to one of these
INSTEAD = {
    "STARTTLS": ("MAIL",),
    "PORT": ("PASV", "EPSV"),
    "EPRT": ("PORT", "PASV", "EPSV"),
    "PASV": ("EPSV", "PORT"),
    "EPSV": ("PASV", "EPRT", "PORT"),
}
FTP_DATA = ("PORT", "EPRT", "PASV")  # without which no file and no list comes
FTP_FAILURES = ("421", "425", "426", "451", "452", "530", "552", "553")

#: words in an answer, and what they mean
REASONS = {
    "strongerAuthRequired": "it wants signing, StartTLS or LDAPS",
    "confidentialityRequired": "it wants TLS",
    "invalidCredentials": "a wrong name or password",
    "STATUS_LOGON_FAILURE": "a wrong name or password",
    "STATUS_WRONG_PASSWORD": "a wrong password",
    "STATUS_NO_SUCH_USER": "it does not know the user",
    "STATUS_ACCESS_DENIED": "an account, right or policy, not the network",
    "STATUS_ACCOUNT_LOCKED_OUT": "too many wrong passwords",
    "STATUS_BAD_NETWORK_NAME": "it has no such share",
    "STATUS_NOT_SUPPORTED": "no version or option in common",
    "STATUS_TIME_DIFFERENCE_AT_DC": "the clocks differ by more than 5 minutes",
    "KRB_AP_ERR_SKEW": "the clocks differ by more than 5 minutes",
    "KDC_ERR_C_PRINCIPAL_UNKNOWN": "it does not know this name",
    "KDC_ERR_S_PRINCIPAL_UNKNOWN": "no account has this service name (SPN)",
    "KDC_ERR_PREAUTH_FAILED": "a wrong password or key",
    "KDC_ERR_CLIENT_REVOKED": "the account is disabled or locked",
    "KDC_ERR_ETYPE_NOSUPP": "no encryption type in common",
    "KDC_ERR_KEY_EXPIRED": "the password has expired",
    "NO_PROPOSAL_CHOSEN": "no encryption, DH group or connection in common",
    "AUTHENTICATION_FAILED": "keys or identities do not match",
    "450 ": "for now: a mail server tries again later",
    "451 ": "for now: a mail server tries again later",
    "53300 ": "max_connections is reached",
    "28P01 ": "a wrong name or password",
    "1040 ": "max_connections is reached",
    "1045 ": "a wrong name or password, or not from this host",
    "max number of clients": "maxclients is reached",
    "18456 ": "a wrong name or password, or the login may not use this database",
    "18452 ": "it does not trust the domain of the login",
    "4060 ": "no such database, or no right to it",
    "ORA-12505": "the listener does not know this SID",
    "ORA-12514": "the listener does not know this service",
    "ORA-12516": "no handler is free: too many sessions or processes",
    "ORA-12519": "no handler is free: too many sessions or processes",
    "ORA-12528": "the database only accepts restricted sessions, or it is just starting",
    "ORA-12520": "no handler of the wanted kind is free",
    "403 ACCESS_REFUSED": "a wrong user or password, or guest from another host",
    "530 NOT_ALLOWED": "no such virtual host, no right to it, or too many connections",
    "320 CONNECTION_FORCED": "the broker is stopped, or an operator closed it",
    "501 FRAME_ERROR": "the client sent what is no AMQP",
    "3 network unreachable": "the proxy itself has no way there",
    "5 connection refused": "the target refuses the proxy",
    "port 0": "the program is not registered there: its service does not run",
    "8 ": "it did not ask for all options that came",
}
