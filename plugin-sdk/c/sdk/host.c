/* Functions for tools that are the same in a plugin and in a test. */

#include "internal.h"

void toolbay_log(toolbay_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    toolbay_host_log(level, toolbay_utf8(toolbay_format_list(format, arguments)));
    va_end(arguments);
}

void toolbay_progress(double progress, double total, const char *message) {
    toolbay_host_progress(progress, total, toolbay_utf8(toolbay_copy_or_absent(message)));
}

void toolbay_resource_updated(const char *uri) {
    toolbay_host_resource_updated(toolbay_utf8(toolbay_str(uri)));
}
