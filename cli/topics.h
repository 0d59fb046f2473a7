/*
 * topics.h - help pages about what several commands have in common.
 */
#ifndef BRECCIA_CLI_TOPICS_H
#define BRECCIA_CLI_TOPICS_H

struct cli_topic {
    const char *name, *summary, *text;
};

/* Returns all topics, ended by one without a name. */
const struct cli_topic *cli_topics(void);

#endif
