/* Memory and strings. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

void toolbay_out_of_memory(void) {
    toolbay_panic("out of memory");
}

void *toolbay_allocate(size_t size) {
    return toolbay_reallocate(NULL, size);
}

#ifdef __wasm__
/* heap.zig */
void *toolbay_heap_reallocate(void *memory, size_t size);
void toolbay_heap_free(void *memory);
#else
#define toolbay_heap_reallocate realloc
#define toolbay_heap_free free
#endif

void *toolbay_reallocate(void *memory, size_t size) {
    /* NULL for a size of 0 does not mean that memory is exhausted. */
    memory = toolbay_heap_reallocate(memory, size ? size : 1);
    if (!memory) toolbay_out_of_memory();
    return memory;
}

void toolbay_release(toolbay_string memory) {
    toolbay_heap_free((void *)memory.data);
}

toolbay_string toolbay_copy(const void *data, size_t size) {
    char *copy = toolbay_allocate(size + 1);
    if (size) memcpy(copy, data, size);
    copy[size] = '\0';
    return (toolbay_string){copy, size};
}

toolbay_string toolbay_copy_or_absent(const char *text) {
    return text ? toolbay_copy(text, strlen(text)) : (toolbay_string){0};
}

toolbay_string toolbay_str(const char *text) {
    if (!text) text = "";
    return (toolbay_string){text, strlen(text)};
}

toolbay_string toolbay_format_list(const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int size = vsnprintf(NULL, 0, format, arguments);
    if (size < 0) toolbay_panic("the format \"%s\" cannot be printed", format);
    char *text = toolbay_allocate((size_t)size + 1);
    vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return (toolbay_string){text, (size_t)size};
}

toolbay_string toolbay_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const toolbay_string text = toolbay_format_list(format, arguments);
    va_end(arguments);
    return text;
}

bool toolbay_blank(const char *text) {
    return !text || text[strspn(text, " \t\n\v\f\r")] == '\0';
}

void toolbay_panic(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    /* Not abort: so the host shows the message, not the number of a trap. */
    _Exit(EXIT_FAILURE);
}
