/* Generates the JSON Schema of a C type. */

#include <math.h>
#include <string.h>

#include "internal.h"

static void write_object(toolbay_writer *writer, const toolbay_type *type, schema_use use);

static void key(toolbay_writer *writer, const char *name) {
    toolbay_write_key(writer, toolbay_str(name));
}

static void text(toolbay_writer *writer, const char *name, const char *value) {
    key(writer, name);
    toolbay_write_string(writer, toolbay_str(value));
}

/* Writes a bound, without a fraction if it is an integer. */
static void bound(toolbay_writer *writer, const char *name, double value) {
    key(writer, name);
    if (value == floor(value) && fabs(value) < 0x1p53) {
        toolbay_write_integer(writer, (int64_t)value);
    } else {
        toolbay_write_number(writer, value);
    }
}

static bool is_said(toolbay_range range) {
    return range.least != 0 || range.greatest != 0;
}

/* Writes the bounds of a number: those that the author gives, else those of an
 * integer's C type. 64-bit bounds are not exact in every client, so they are
 * left out. */
static void write_range(toolbay_writer *writer, const toolbay_field *field) {
    if (is_said(field->range)) {
        bound(writer, "minimum", field->range.least);
        bound(writer, "maximum", field->range.greatest);
    } else if (field->kind != TOOLBAY_KIND_NUMBER) {
        const bool natural = field->kind == TOOLBAY_KIND_NATURAL;
        const double values = ldexp(1, (int)(8 * field->size));
        const bool small = field->size < sizeof(int64_t);
        if (natural) {
            bound(writer, "minimum", 0);
        } else if (small) {
            bound(writer, "minimum", -values / 2);
        }
        if (small) bound(writer, "maximum", (natural ? values : values / 2) - 1);
    }
}

static void write_length(toolbay_writer *writer, toolbay_range length, const char *least, const char *greatest) {
    if (length.least > 0) bound(writer, least, length.least);
    if (length.greatest > 0) bound(writer, greatest, length.greatest);
}

/* Writes the choices. Those of a list are written in the schema of its values. */
static void write_choices(toolbay_writer *writer, const toolbay_field *field, bool nullable) {
    if (!field->choices) return;
    key(writer, "enum");
    toolbay_write_array(writer);
    for (const char *const *choice = field->choices; *choice; choice++) {
        toolbay_write_string(writer, toolbay_str(*choice));
    }
    if (nullable) toolbay_write_null(writer);
    toolbay_write_array_end(writer);
}

static void write_type(toolbay_writer *writer, const char *name, bool nullable) {
    if (!nullable) {
        text(writer, "type", name);
        return;
    }
    key(writer, "type");
    toolbay_write_array(writer);
    toolbay_write_string(writer, toolbay_str(name));
    toolbay_write_string(writer, toolbay_str("null"));
    toolbay_write_array_end(writer);
}

/* Writes the members of the schema of one value. */
static void write_value(toolbay_writer *writer, const toolbay_field *field, bool nullable, schema_use use) {
    switch (field->kind) {
    case TOOLBAY_KIND_BOOLEAN:
        write_type(writer, "boolean", nullable);
        break;
    case TOOLBAY_KIND_INTEGER:
    case TOOLBAY_KIND_NATURAL:
        write_type(writer, "integer", nullable);
        write_range(writer, field);
        break;
    case TOOLBAY_KIND_NUMBER:
        write_type(writer, "number", nullable);
        write_range(writer, field);
        break;
    case TOOLBAY_KIND_TEXT:
    case TOOLBAY_KIND_STRING:
        write_type(writer, "string", nullable);
        write_choices(writer, field, nullable);
        if (!field->list) write_length(writer, field->length, "minLength", "maxLength");
        if (field->pattern) text(writer, "pattern", field->pattern);
        if (field->format) text(writer, "format", field->format);
        break;
    case TOOLBAY_KIND_RAW:
        break;
    case TOOLBAY_KIND_OBJECT:
        write_object(writer, field->type, use);
        break;
    }
}

/* Writes the default, if the value of an omitted field can be written as JSON. */
static void write_default(toolbay_writer *writer, const toolbay_type *type, const toolbay_field *field) {
    const char *defaults = type->defaults;
    if (field->list || field->pointer || field->kind >= TOOLBAY_KIND_RAW) return;
    if (field->kind == TOOLBAY_KIND_TEXT || field->kind == TOOLBAY_KIND_STRING) {
        const char *told = NULL;
        if (defaults) memcpy(&told, defaults + field->offset, sizeof told);
        if (!told) return;
    }
    static const char zero[sizeof(toolbay_string)] = {0};
    const char *value = defaults ? defaults + field->offset : zero;
    toolbay_field alone = *field;
    alone.offset = 0;
    key(writer, "default");
    toolbay_encode_field(writer, &alone, value);
}

static void write_field(toolbay_writer *writer, const toolbay_type *type, const toolbay_field *field, schema_use use) {
    toolbay_write_object(writer);
    if (field->title) text(writer, "title", field->title);
    if (field->description) text(writer, "description", field->description);
    if (field->list) {
        text(writer, "type", "array");
        key(writer, "items");
        toolbay_write_object(writer);
        write_value(writer, field, false, use);
        toolbay_write_object_end(writer);
        write_length(writer, field->length, "minItems", "maxItems");
    } else {
        write_value(writer, field, field->nullable && use != SCHEMA_OF_FORM, use);
    }
    if (use != SCHEMA_OF_RESULT && field->optional) write_default(writer, type, field);
    toolbay_write_object_end(writer);
}

/* Returns whether the member may be missing. A NULL pointer is left out of an
 * object, unless it is written as null. */
static bool may_be_missing(const toolbay_field *field) {
    return field->optional || (field->pointer && !field->nullable);
}

static void write_required(toolbay_writer *writer, const toolbay_type *type) {
    bool any = false;
    for (size_t i = 0; i < type->count; i++) {
        if (may_be_missing(&type->fields[i])) continue;
        if (!any) {
            key(writer, "required");
            toolbay_write_array(writer);
        }
        any = true;
        toolbay_write_string(writer, toolbay_str(type->fields[i].name));
    }
    /* Older drafts forbid an empty list. */
    if (any) toolbay_write_array_end(writer);
}

static void write_object(toolbay_writer *writer, const toolbay_type *type, schema_use use) {
    text(writer, "type", "object");
    key(writer, "properties");
    toolbay_write_object(writer);
    for (size_t i = 0; i < type->count; i++) {
        key(writer, type->fields[i].name);
        write_field(writer, type, &type->fields[i], use);
    }
    toolbay_write_object_end(writer);
    write_required(writer, type);
    /* Clients support only a part of JSON Schema in forms, which excludes this
     * keyword. */
    if (use == SCHEMA_OF_FORM) return;
    key(writer, "additionalProperties");
    toolbay_write_boolean(writer, false);
}

toolbay_string toolbay_schema(const toolbay_type *type, schema_use use) {
    toolbay_writer *writer = toolbay_writer_new();
    toolbay_write_object(writer);
    write_object(writer, type, use);
    toolbay_write_object_end(writer);
    return toolbay_written(writer);
}
