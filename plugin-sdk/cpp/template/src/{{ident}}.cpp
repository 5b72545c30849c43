#include <algorithm>
#include <cctype>
#include <string>

#include "toolbay/toolbay.hpp"

namespace {

struct Greet {
    toolbay::required<std::string, "Who to greet."> name;
    toolbay::optional<bool, "Whether to shout."> excited = false;
};

bool is_space(unsigned char c) {
    return std::isspace(c) != 0;
}

toolbay::result<std::string> greet(const Greet &args) {
    if (std::ranges::all_of(args.name, is_space)) return toolbay::invalid("name is empty: say who to greet");
    if (!args.excited) return "Hello, " + args.name + ".";
    std::string name = args.name;
    for (char &c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return "HELLO, " + name + "!";
}

struct Text {
    toolbay::required<std::string, "Text to count."> text;
};

struct Counted {
    toolbay::required<unsigned, "How many Unicode code points."> characters;
    toolbay::required<unsigned, "How many words, separated by white space."> words;
    toolbay::required<unsigned, "How many lines."> lines;
};

Counted count(const Text &args) {
    unsigned characters = 0, words = 0, lines = args.text.empty() ? 0 : 1;
    bool in_word = false;
    for (const unsigned char c : args.text) {
        if ((c & 0xC0) != 0x80) characters++; // the other bytes continue a code point
        if (!is_space(c) && !in_word) words++;
        if (c == '\n') lines++;
        in_word = !is_space(c);
    }
    return {characters, words, lines};
}

} // namespace

std::vector<toolbay::tool> toolbay::tools() {
    return {
        {
            .name = "{{ident}}_greet",
            .description = "Greets somebody by name.",
            .run = greet,
            .read_only = true,
        },
        {
            .name = "{{ident}}_count",
            .description = "Counts the characters, words and lines of a text.",
            .run = count,
            .read_only = true,
        },
    };
}
