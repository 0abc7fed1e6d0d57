/* The faults of this thread's children, from the kernel's perf events. */
#ifndef APPULSE_PROFILE_FAULT_COUNTER_H
#define APPULSE_PROFILE_FAULT_COUNTER_H

#include "fault_events.h"

struct fault_counter;

/* Opens the events for what the calling thread does and starts from now on; `soft`
 * adds the faults that needed no disk.  COMMAND, with the reason, when the kernel
 * does not let us; NO_MEMORY. */
enum status fault_counter_open(bool soft, struct fault_counter **ret_counter,
			       struct diag *diag);
void fault_counter_close(struct fault_counter *counter);

/* Gives the file the number `file` in the events that follow.  How the kernel names
 * it there is found out by mapping it (a file system may show another device to
 * stat).  IO, NO_MEMORY, COMMAND. */
enum status fault_counter_name(struct fault_counter *counter, const char *path,
			       uint32_t file, struct diag *diag);

/* Forgets all names. */
void fault_counter_forget(struct fault_counter *counter);

/* Collects from fault_counter_start until fault_counter_stop, in a thread of its
 * own.  Events of this process itself are left out.  After the stop `ret_events` is
 * owned by the caller; `ret_lost` counts events for which there was no room.
 * NO_MEMORY. */
enum status fault_counter_start(struct fault_counter *counter, struct diag *diag);
enum status fault_counter_stop(struct fault_counter *counter,
			       struct fault_event_list *ret_events, uint64_t *ret_lost,
			       struct diag *diag);

/* Whether faults that the kernel takes on a program's behalf are counted too. */
bool fault_counter_sees_kernel(const struct fault_counter *counter);

#endif
