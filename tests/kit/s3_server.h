/*
 * A server on the loopback interface that speaks as much of the protocol of Amazon S3 as the
 * backend s3 uses, and fails as it is told to: what goes wrong between a client and a real server.
 * It keeps objects in memory, in one bucket "box", and believes every signature.
 */
#ifndef BRC_TESTS_S3_SERVER_H
#define BRC_TESTS_S3_SERVER_H

#include <stddef.h>

typedef struct s3_server s3_server;

enum {
    S3_FINE = 0,
    S3_CLOSED,    /* no answer; nothing is done                                        */
    S3_LOST,      /* no answer; what was asked is done                                 */
    S3_CUT,       /* half of the answer                                                */
    S3_WRONG,     /* other bytes in the body                                           */
    S3_LONG,      /* more than was asked for                                           */
    S3_OTHER,     /* another range                                                     */
    S3_WHOLE,     /* the whole object instead of the range                             */
    S3_SLOW,      /* the answer comes when another request has come, or the server ends */
    S3_PLAIN,     /* If-None-Match gets the answer 501                                 */
    S3_STATUS = 100 /* and more: this status with an error named by s3_server_code()   */
};

s3_server *s3_server_start(void);
void s3_server_stop(s3_server *s);
const char *s3_server_endpoint(const s3_server *s); /* "http://127.0.0.1:PORT" */

/* From the n-th request from now on (0: the next), `count` requests go wrong in this way. */
void s3_server_fail(s3_server *s, int n, int count, int how);
/* The name of the error in answers with a status, and the bucket's region that they tell ("":
 * none). */
void s3_server_code(s3_server *s, const char *code, const char *region);
/* From now on each answer takes so long on its way; and how many requests waited for theirs at once
 * since then, and how often one began to wait while no other did: who asks for many at once waits
 * once. */
void s3_server_delay(s3_server *s, int ms);
int s3_server_at_once(s3_server *s);
int s3_server_rounds(s3_server *s);
int s3_server_requests(s3_server *s); /* how many came so far */
int s3_server_connections(s3_server *s);
int s3_server_objects(s3_server *s, const char *prefix);
void s3_server_put(s3_server *s, const char *key, const void *data, size_t len);
/* How often these 8 bytes are in objects, at multiples of 8. */
int s3_server_words(s3_server *s, const char word[8]);
/* Keeps all objects as they are now, and makes them so again. */
void s3_server_keep(s3_server *s);
void s3_server_restore(s3_server *s);
/* The name of the n-th object, "" behind the last; valid until the next change. */
const char *s3_server_object(s3_server *s, int n);
size_t s3_server_bytes(s3_server *s, int n); /* its length; 0 behind the last */
/* Changes one byte of an object, or cuts it off, or removes it (cut to -1). */
void s3_server_damage(s3_server *s, const char *key, long cut);

#endif
