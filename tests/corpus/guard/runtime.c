/* What the C runtime would give: enough to link, not to run. */
typedef unsigned long long u64;

int __CxxFrameHandler3(void *record, void *frame, void *context, void *dispatcher)
{
	return record && frame && context && dispatcher;
}

int _setjmp(void *place, void *frame)
{
	return place == frame;
}

void longjmp(void *place, int value)
{
	for (;;)
		*(volatile int *)place = value;
}

int DllMain(void *dll, unsigned reason, void *reserved)
{
	return dll != reserved || reason;
}

static void checks(void)
{
}

void *__guard_check_icall_fptr = checks;
void *__guard_dispatch_icall_fptr = checks;
int _fltused;

extern char __guard_fids_table[], __guard_fids_count[], __guard_iat_table[];
extern char __guard_iat_count[], __guard_longjmp_table[], __guard_longjmp_count[];
extern char __guard_eh_cont_table[], __guard_eh_cont_count[];

/* IMAGE_LOAD_CONFIG_DIRECTORY64, what stands between in words. */
const struct {
	unsigned size, before[21];
	u64 cookie, handlers[2];
	void *check, *dispatch;
	char *functions, *function_count;
	unsigned flags, integrity[3];
	char *slots, *slot_count, *long_jumps, *long_jump_count;
	u64 between[9];
	char *continuations, *continuation_count;
	u64 behind[5];
} _load_config_used = {
	.size = sizeof(_load_config_used),
	.check = &__guard_check_icall_fptr,
	.dispatch = &__guard_dispatch_icall_fptr,
	.functions = __guard_fids_table,
	.function_count = __guard_fids_count,
	.flags = 0x00410500, /* functions, longjmp, continuations; rows of 4 bytes */
	.slots = __guard_iat_table,
	.slot_count = __guard_iat_count,
	.long_jumps = __guard_longjmp_table,
	.long_jump_count = __guard_longjmp_count,
	.continuations = __guard_eh_cont_table,
	.continuation_count = __guard_eh_cont_count,
};
