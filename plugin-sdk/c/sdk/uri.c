/* URI templates (RFC 6570, level 1, and {+name}): matches URIs, and extracts the
 * values of their variables. */

#include <string.h>

#include "internal.h"

/* One variable of a template, and the text after it up to the next one. */
typedef struct {
    toolbay_string name; /* without + */
    bool any;            /* {+name} */
    toolbay_string after;
    const char *rest;    /* after that text */
} variable;

/* Reads the variable at this brace. Returns false if the brace is never closed. */
static bool variable_at(const char *brace, variable *found) {
    const char *end = strchr(brace, '}');
    if (!end) return false;
    const char *name = brace + 1;
    found->any = *name == '+';
    if (found->any) name++;
    found->name = (toolbay_string){name, (size_t)(end - name)};
    found->after = (toolbay_string){end + 1, strcspn(end + 1, "{")};
    found->rest = end + 1 + found->after.size;
    return true;
}

bool toolbay_is_template(const char *uri) {
    return strchr(uri, '{') != NULL;
}

bool toolbay_has_variable(const char *template, const char *name) {
    variable each;
    for (const char *at = strchr(template, '{'); at && variable_at(at, &each); at = strchr(each.rest, '{')) {
        if (strlen(name) == each.name.size && memcmp(name, each.name.data, each.name.size) == 0) return true;
    }
    return false;
}

static int digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Decodes percent-encoding. Returns false if the result is not text. */
static bool decode(toolbay_string from, toolbay_string *to) {
    char *bytes = toolbay_allocate(from.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < from.size; i++) {
        bytes[size] = from.data[i];
        if (from.data[i] == '%') {
            const int high = i + 2 < from.size ? digit(from.data[i + 1]) : -1;
            const int low = high >= 0 ? digit(from.data[i + 2]) : -1;
            if (low < 0) return false;
            bytes[size] = (char)(high << 4 | low);
            i += 2;
        }
        size++;
    }
    bytes[size] = '\0';
    *to = (toolbay_string){bytes, size};
    return toolbay_is_utf8(*to);
}

/* Returns the end of the value that begins here: the first occurrence of the
 * following text, after at least one character. NULL if there is none. */
static const char *end_of_value(const char *uri, const variable *variable) {
    if (!*uri) return NULL;
    if (!variable->after.size && !*variable->rest) return uri + strlen(uri);
    const char *second = uri + 1;
    while (((unsigned char)*second & 0xC0) == 0x80) second++; /* continuation bytes of a character */
    const toolbay_string after = toolbay_copy(variable->after.data, variable->after.size);
    return *second ? strstr(second, after.data) : NULL;
}

bool toolbay_match_uri(const char *template, const char *uri, toolbay_values *values) {
    *values = (toolbay_values){0};
    size_t literal = strcspn(template, "{");
    for (;;) {
        if (strncmp(template, uri, literal) != 0) return false;
        template += literal;
        uri += literal;
        if (!*template) return !*uri;
        variable variable;
        if (!variable_at(template, &variable)) return false;
        const char *end = end_of_value(uri, &variable);
        if (!end) return false;
        toolbay_string value = toolbay_copy(uri, (size_t)(end - uri));
        if (!variable.any && (value.data[strcspn(value.data, "/?#")] || !decode(value, &value))) return false;
        values->all = toolbay_reallocate(values->all, (values->count + 1) * sizeof *values->all);
        values->all[values->count++] =
            (toolbay_setting){toolbay_copy(variable.name.data, variable.name.size), value};
        uri = end;
        template = variable.after.data;
        literal = variable.after.size;
    }
}
