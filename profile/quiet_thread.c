#include "quiet_thread.h"

#include <signal.h>

int quiet_thread_start(pthread_t *ret_thread, void *(*run)(void *with), void *with)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(ret_thread, NULL, run, with);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}
