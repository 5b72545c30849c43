#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "toolbay/toolbay.h"

/* ----------------------------------------------------------------- greet */

struct greet {
    const char *name;
    bool excited;
};

static const toolbay_type greet_type = TOOLBAY_TYPE(struct greet,
    TOOLBAY_FIELD(struct greet, name, "Who to greet."),
    TOOLBAY_FIELD(struct greet, excited, "Whether to shout.", .optional = true));

static toolbay_result *greet(const void *arguments) {
    const struct greet *args = arguments;
    if (toolbay_blank(args->name)) return toolbay_invalid("name is empty: say who to greet");
    if (!args->excited) return toolbay_text("Hello, %s.", args->name);
    char *name = strdup(args->name);
    for (char *c = name; *c; c++) *c = (char)toupper((unsigned char)*c);
    return toolbay_text("HELLO, %s!", name);
}

/* ----------------------------------------------------------------- count */

struct text {
    toolbay_string text;
};

static const toolbay_type text_type = TOOLBAY_TYPE(struct text,
    TOOLBAY_FIELD(struct text, text, "Text to count."));

struct counted {
    uint32_t characters, words, lines;
};

static const toolbay_type counted_type = TOOLBAY_TYPE(struct counted,
    TOOLBAY_FIELD(struct counted, characters, "How many Unicode code points."),
    TOOLBAY_FIELD(struct counted, words, "How many words, separated by white space."),
    TOOLBAY_FIELD(struct counted, lines, "How many lines."));

static toolbay_result *count(const void *arguments) {
    const toolbay_string text = ((const struct text *)arguments)->text;
    struct counted counted = {.lines = text.size > 0};
    bool in_word = false;
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        const bool space = isspace(c);
        if ((c & 0xC0) != 0x80) counted.characters++; /* the other bytes continue a code point */
        if (!space && !in_word) counted.words++;
        if (c == '\n') counted.lines++;
        in_word = !space;
    }
    return toolbay_structured(&counted_type, &counted);
}

/* ----------------------------------------------------------------- tools */

TOOLBAY_PLUGIN(
    {
        .name = "{{ident}}_greet",
        .description = "Greets somebody by name.",
        .arguments = &greet_type,
        .call = greet,
        .read_only = TOOLBAY_YES,
    },
    {
        .name = "{{ident}}_count",
        .description = "Counts the characters, words and lines of a text.",
        .arguments = &text_type,
        .structured = &counted_type,
        .call = count,
        .read_only = TOOLBAY_YES,
    })
