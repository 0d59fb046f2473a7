/*
 * credentials.h - which servers a program of the user connects to, and what it shows them: the command
 * and the Python package, which is linked with this file too.
 *
 * A repository names the server of its chunks, and may come from a stranger. So credentials belong
 * to servers: those of the environment and of the chosen profile to the server AWS_ENDPOINT_URL_S3
 * or AWS_ENDPOINT_URL, or, without these, to Amazon's own; those of another profile of
 * ~/.aws/config to the server that its endpoint_url names. To any other server nothing is sent.
 */
#ifndef BRC_CLI_CREDENTIALS_H
#define BRC_CLI_CREDENTIALS_H

#include "../src/breccia.h"

/* A brc_credentials_fn. It uses nothing but its arguments, the environment and the user's files,
 * because it may run on any thread. */
int cli_credentials(void *ctx, const brc_server *server, brc_credentials *out, brc_error *err);

/* Returns whether credentials for an endpoint are for this server. NULL: those of the environment,
 * without a profile. */
int cli_is_chosen(const brc_server *server, const char *endpoint);

#endif
