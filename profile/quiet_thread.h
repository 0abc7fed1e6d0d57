/* Threads beside a command that runs. */
#ifndef APPULSE_PROFILE_QUIET_THREAD_H
#define APPULSE_PROFILE_QUIET_THREAD_H

#include <pthread.h>

/* As pthread_create, with all signals blocked in the thread: one of the process is for the
 * thread that runs the command (child.h) and waits for it, and would be lost in another
 * that ignores it.  0 or an errno. */
int quiet_thread_start(pthread_t *ret_thread, void *(*run)(void *with), void *with);

#endif
