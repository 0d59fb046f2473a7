/* A shared object that is no plug-in. */
int stranger_answer(void);

int stranger_answer(void)
{
    return 42;
}
