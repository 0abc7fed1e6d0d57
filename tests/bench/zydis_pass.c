/* A plain Zydis pass over an image's code: what the tools' time is compared with.
 *
 *     zydis_pass [--no-operands] IMAGE
 *
 * Decodes every executable section from its first byte to its last, one instruction
 * behind the other, and prints how many there were.  A byte that begins no
 * instruction is passed over.  Each instruction is decoded with its operands, by
 * ZydisDecoderDecodeFull, as users of Zydis do who want to know what an instruction
 * refers to; --no-operands leaves them out.  Nothing is kept and nothing is printed
 * for an instruction, so this is the least that any program of this kind costs.
 *
 * It links with nothing of ours and loads no library but Zydis: the start of the
 * process is a part of what is measured.
 */
#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXECUTE = 0x20000000 /* PE/COFF specification, "Section Flags" */ };

struct pass {
	ZydisDecoder decoder;
	bool operands;
	uint64_t bytes, instructions, bad_bytes;
	uint64_t visible; /* operands that a disassembler would show */
};

static uint32_t load(const uint8_t *bytes, unsigned size)
{
	uint32_t value = 0;

	memcpy(&value, bytes, size);
	return value;
}

static void decode(struct pass *pass, const uint8_t *code, size_t size)
{
	ZydisDecodedInstruction instruction;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZyanStatus status;

	pass->bytes += size;
	for (size_t at = 0; at < size;) {
		if (pass->operands)
			status = ZydisDecoderDecodeFull(&pass->decoder, code + at, size - at,
							&instruction, operands);
		else
			status = ZydisDecoderDecodeInstruction(&pass->decoder, NULL, code + at,
							       size - at, &instruction);
		if (!ZYAN_SUCCESS(status)) {
			pass->bad_bytes++;
			at++;
			continue;
		}
		pass->instructions++;
		pass->visible += instruction.operand_count_visible;
		at += instruction.length;
	}
}

/* Fields: PE/COFF specification, "COFF File Header" and "Section Table". */
static bool decode_image(struct pass *pass, const uint8_t *file, size_t size)
{
	uint32_t header = size < 64 ? UINT32_MAX : load(file + 60, 4), count;
	uint64_t table;

	if (header > size || size - header < 24 || memcmp(file + header, "PE\0", 4) != 0)
		return false;
	count = load(file + header + 6, 2);
	table = (uint64_t)header + 24 + load(file + header + 20, 2);
	if (table + 40 * count > size)
		return false;
	for (const uint8_t *row = file + table; count > 0; count--, row += 40) {
		uint32_t virtual_size = load(row + 8, 4), length = load(row + 16, 4);
		uint32_t begin = load(row + 20, 4);

		if (length > virtual_size)
			length = virtual_size;
		if (!(load(row + 36, 4) & EXECUTE))
			continue;
		if (begin > size || size - begin < length)
			return false;
		decode(pass, file + begin, length);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct pass pass = {.operands = argc == 2};
	const char *path = argc > 1 ? argv[argc - 1] : "";
	struct stat st;
	const uint8_t *file;
	int fd;

	if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[1], "--no-operands") != 0)) {
		fprintf(stderr, "usage: zydis_pass [--no-operands] IMAGE\n");
		return 2;
	}
	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) != 0) {
		perror(path);
		return 1;
	}
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED) {
		perror(path);
		return 1;
	}
	ZydisDecoderInit(&pass.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!decode_image(&pass, file, (size_t)st.st_size)) {
		fprintf(stderr, "zydis_pass: %s: no PE image\n", path);
		return 1;
	}
	printf("%llu bytes, %llu instructions, %llu operands, %llu bad bytes\n",
	       (unsigned long long)pass.bytes, (unsigned long long)pass.instructions,
	       (unsigned long long)pass.visible, (unsigned long long)pass.bad_bytes);
	return 0;
}
