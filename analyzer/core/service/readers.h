/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of all services. */
#ifndef WIRETALE_SERVICE_READERS_H
#define WIRETALE_SERVICE_READERS_H

#include "service/message.h"

/* logins.c */
void ldap_read(struct service_message *message, struct service_bytes bytes);
void smb_read(struct service_message *message, struct service_bytes bytes);
void rdp_read(struct service_message *message, struct service_bytes bytes);
void mqtt_read(struct service_message *message, struct service_bytes bytes);
/* kerberos.c */
void kerberos_read(struct service_message *message, struct service_bytes bytes);
void kerberos_stream_read(struct service_message *message, struct service_bytes bytes);
/* databases.c */
void mysql_read(struct service_message *message, struct service_bytes bytes);
void postgresql_read(struct service_message *message, struct service_bytes bytes);
void redis_read(struct service_message *message, struct service_bytes bytes);
void mongodb_read(struct service_message *message, struct service_bytes bytes);
/* listeners.c */
void tds_read(struct service_message *message, struct service_bytes bytes);
void tns_read(struct service_message *message, struct service_bytes bytes);
/* relays.c */
void amqp_read(struct service_message *message, struct service_bytes bytes);
void socks_read(struct service_message *message, struct service_bytes bytes);
/* http2.c */
void http2_read(struct service_message *message, struct service_bytes bytes);
/* lines.c */
void smtp_read(struct service_message *message, struct service_bytes bytes);
void ftp_read(struct service_message *message, struct service_bytes bytes);
void pop3_read(struct service_message *message, struct service_bytes bytes);
void imap_read(struct service_message *message, struct service_bytes bytes);
/* bgp.c */
void bgp_read(struct service_message *message, struct service_bytes bytes);
/* modbus.c */
void modbus_read(struct service_message *message, struct service_bytes bytes);
/* datagrams.c */
void ntp_read(struct service_message *message, struct service_bytes bytes);
void ike_read(struct service_message *message, struct service_bytes bytes);
void tftp_read(struct service_message *message, struct service_bytes bytes);
void portmap_read(struct service_message *message, struct service_bytes bytes);

#endif
