/* A shared object that is not a plug-in. */
int stranger_answer(void);

int stranger_answer(void)
{
    return 42;
}
