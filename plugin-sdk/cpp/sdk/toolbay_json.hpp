// Conversion between C++ types and JSON, and their JSON Schema.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <expected>
#include <format>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "c/toolbay.h"
#include "toolbay_fields.hpp"

namespace toolbay {

// JSON as text: a field of this type can have any JSON value.
struct json {
    std::string text;
};

namespace detail {

inline toolbay_string lend(std::string_view text) {
    return {text.data(), text.size()};
}

inline std::string text(toolbay_string lent) {
    return lent.data ? std::string(lent.data, lent.size) : std::string();
}

// ------------------------------------------------------------ kinds of types

template <typename T>
constexpr bool is_optional = false;
template <typename T>
constexpr bool is_optional<std::optional<T>> = true;

template <typename T>
constexpr bool is_tuple = false;
template <typename... T>
constexpr bool is_tuple<std::tuple<T...>> = true;
template <typename A, typename B>
constexpr bool is_tuple<std::pair<A, B>> = true;

template <typename T>
constexpr bool is_map = false;
template <typename T, typename... Rest>
constexpr bool is_map<std::map<std::string, T, Rest...>> = true;

template <typename T>
concept integer = std::integral<T> && !std::same_as<T, bool>;

template <typename T>
concept string = std::convertible_to<T, std::string_view>;

template <typename T>
concept list = !string<T> && !is_map<T> && requires(T value) {
    value.begin();
    value.end();
    typename T::value_type;
};

// A struct with fields that are all public.
template <typename T>
concept object = std::is_aggregate_v<T> && std::is_class_v<T> && !list<T> && !std::same_as<T, json>;

template <typename T>
constexpr bool has_no_shape = false;

// ------------------------------------------------------------------- writing

// Writes JSON from left to right.
class writer {
  public:
    void key(std::string_view name) {
        toolbay_write_key(writer_, lend(name));
    }

    template <typename T>
    void write(const T &value) {
        if constexpr (std::same_as<T, bool>) {
            toolbay_write_boolean(writer_, value);
        } else if constexpr (integer<T> && std::is_signed_v<T>) {
            toolbay_write_integer(writer_, value);
        } else if constexpr (integer<T>) {
            toolbay_write_natural(writer_, value);
        } else if constexpr (std::floating_point<T>) {
            toolbay_write_number(writer_, static_cast<double>(value));
        } else if constexpr (string<T>) {
            toolbay_write_string(writer_, lend(value));
        } else if constexpr (std::same_as<T, json>) {
            toolbay_write_raw(writer_, lend(value.text.empty() ? "null" : std::string_view(value.text)));
        } else if constexpr (std::is_enum_v<T>) {
            each_enumerator<T>([&](std::string_view name, T each) {
                if (each == value) write(name);
            });
        } else if constexpr (is_optional<T>) {
            value ? write(*value) : toolbay_write_null(writer_);
        } else if constexpr (is_map<T>) {
            write_object([&] {
                for (const auto &[name, each] : value) member(name, each);
            });
        } else if constexpr (list<T>) {
            write_array([&] {
                for (const auto &each : value) write(bare(each));
            });
        } else if constexpr (object<T>) {
            write_object([&] { each_field(value, [&](auto name, const auto &field) { member(name, bare(field)); }); });
        } else {
            static_assert(has_no_shape<T>, "this type has no form in JSON");
        }
    }

    template <typename T>
    void member(std::string_view name, const T &value) {
        key(name);
        write(value);
    }

    void write_object(auto &&members) {
        toolbay_write_object(writer_);
        members();
        toolbay_write_object_end(writer_);
    }

    void write_array(auto &&values) {
        toolbay_write_array(writer_);
        values();
        toolbay_write_array_end(writer_);
    }

    std::string written() const {
        return text(toolbay_written(writer_));
    }

  private:
    toolbay_writer *writer_ = toolbay_writer_new();
};

// -------------------------------------------------------------------- schema

// Writes a bound, without a fraction if it is an integer.
inline void write_bound(writer &to, std::string_view name, double bound) {
    if (bound == std::floor(bound) && std::fabs(bound) < 0x1p53) {
        to.member(name, static_cast<std::int64_t>(bound));
    } else {
        to.member(name, bound);
    }
}

// The constraints of a field, and which of them are set.
class constraint_writer {
  public:
    constraint_writer(writer &to, bool list) : to_(to), list_(list) {}

    void write(minimum bound) {
        has_minimum = true;
        write_bound(to_, "minimum", bound.value);
    }

    void write(maximum bound) {
        has_maximum = true;
        write_bound(to_, "maximum", bound.value);
    }

    void write(min_length bound) {
        to_.member(list_ ? "minItems" : "minLength", bound.value);
    }

    void write(max_length bound) {
        to_.member(list_ ? "maxItems" : "maxLength", bound.value);
    }

    template <std::size_t Size>
    void write(const pattern<Size> &pattern) {
        to_.member("pattern", std::string_view(pattern.regex));
    }

    bool has_minimum = false, has_maximum = false;

  private:
    writer &to_;
    bool list_;
};

inline void write_type(writer &to, std::string_view name, bool nullable) {
    to.key("type");
    if (!nullable) return to.write(name);
    to.write_array([&] {
        to.write(name);
        to.write(std::string_view("null"));
    });
}

// The purpose of a schema. A value of a result is always present, and may be null.
enum class schema_use { arguments, result, form };

template <typename T>
void write_properties(writer &to, schema_use use);

// Writes the members of the schema of a T.
template <typename T, typename Constraints = std::tuple<>>
void write_schema(writer &to, schema_use use, bool nullable = false, const Constraints &constraints = {}) {
    constraint_writer said(to, list<T>);
    const auto write_constraints = [&] { std::apply([&](const auto &...each) { (said.write(each), ...); }, constraints); };
    if constexpr (is_optional<T>) {
        write_schema<typename T::value_type>(to, use, use == schema_use::result, constraints);
    } else if constexpr (std::same_as<T, bool>) {
        write_type(to, "boolean", nullable);
    } else if constexpr (integer<T>) {
        write_type(to, "integer", nullable);
        write_constraints();
        // 64-bit bounds are not exact in every client.
        constexpr bool small = sizeof(T) < sizeof(std::int64_t);
        if (!said.has_minimum && (small || std::is_unsigned_v<T>)) to.member("minimum", std::numeric_limits<T>::min());
        if (!said.has_maximum && small) to.member("maximum", std::numeric_limits<T>::max());
    } else if constexpr (std::floating_point<T>) {
        write_type(to, "number", nullable);
        write_constraints();
    } else if constexpr (string<T>) {
        write_type(to, "string", nullable);
        write_constraints();
    } else if constexpr (std::is_enum_v<T>) {
        write_type(to, "string", nullable);
        to.key("enum");
        to.write_array([&] {
            each_enumerator<T>([&](std::string_view name, T) { to.write(name); });
            if (nullable) to.write(std::optional<bool>());
        });
    } else if constexpr (is_map<T>) {
        write_type(to, "object", nullable);
        to.key("additionalProperties");
        to.write_object([&] { write_schema<typename T::mapped_type>(to, use); });
    } else if constexpr (list<T>) {
        write_type(to, "array", nullable);
        to.key("items");
        to.write_object([&] { write_schema<typename T::value_type>(to, use); });
        write_constraints();
    } else if constexpr (object<T>) {
        write_type(to, "object", nullable);
        write_properties<T>(to, use);
    } else {
        static_assert(std::same_as<T, json>, "this type has no form in JSON");
    }
}

template <typename T>
void write_properties(writer &to, schema_use use) {
    const T defaults{};
    std::vector<std::string_view> required;
    to.key("properties");
    to.write_object([&] {
        each_field(defaults, [&]<typename Field>(std::string_view name, const Field &field) {
            using traits = traits<Field>;
            if (use == schema_use::result || !traits::optional) required.push_back(name);
            to.key(name);
            to.write_object([&] {
                if (!traits::description.empty()) to.member("description", traits::description);
                write_schema<typename traits::type>(to, use, false, traits::constraints);
                if constexpr (traits::has_default) {
                    if (use != schema_use::result) to.member("default", bare(field));
                }
            });
        });
    });
    // Older drafts forbid an empty list.
    if (!required.empty()) to.member("required", required);
    // Clients support only a part of JSON Schema in forms, which excludes this
    // keyword.
    if (use != schema_use::form) to.member("additionalProperties", false);
}

template <typename T>
std::string schema(schema_use use) {
    static_assert(object<T>, "the arguments of a tool, its structured content, and a form are a struct");
    writer to;
    to.write_object([&] { write_schema<T>(to, use); });
    return to.written();
}

template <typename T>
std::string arguments_schema() {
    return schema<T>(schema_use::arguments);
}

template <typename T>
std::string result_schema() {
    return schema<T>(schema_use::result);
}

inline std::string no_arguments_schema() {
    return R"({"type":"object","properties":{},"additionalProperties":false})";
}

// ------------------------------------------------------------------- reading

// Reads a value. Returns an error message, or nothing.
template <typename T>
std::string read(const toolbay_json *from, const std::string &path, T &value) {
    const auto expected = [&](std::string_view what) { return std::format("`{}` must be {}", path, what); };
    if constexpr (is_optional<T>) {
        if (toolbay_json_kind_of(from) == TOOLBAY_JSON_NULL) return value.reset(), "";
        return read(from, path, value.emplace());
    } else if constexpr (std::same_as<T, bool>) {
        return toolbay_json_boolean(from, &value) ? "" : expected("true or false");
    } else if constexpr (integer<T> && std::is_signed_v<T>) {
        std::int64_t number;
        if (!toolbay_json_integer(from, &number) || !std::in_range<T>(number)) return expected("an integer of its size");
        value = static_cast<T>(number);
        return "";
    } else if constexpr (integer<T>) {
        std::uint64_t number;
        if (!toolbay_json_natural(from, &number) || !std::in_range<T>(number)) {
            return expected("an integer of its size, and not negative");
        }
        value = static_cast<T>(number);
        return "";
    } else if constexpr (std::floating_point<T>) {
        double number;
        if (!toolbay_json_number(from, &number)) return expected("a number");
        value = static_cast<T>(number);
        return "";
    } else if constexpr (std::same_as<T, std::string>) {
        toolbay_string string;
        if (!toolbay_json_string(from, &string)) return expected("a string");
        value = text(string);
        return "";
    } else if constexpr (std::same_as<T, json>) {
        value.text = text(toolbay_json_text(from));
        return "";
    } else if constexpr (std::is_enum_v<T>) {
        toolbay_string string;
        bool found = false;
        if (toolbay_json_string(from, &string)) {
            each_enumerator<T>([&](std::string_view name, T each) {
                if (name == std::string_view(string.data, string.size)) value = each, found = true;
            });
        }
        return found ? "" : expected("one of its names");
    } else if constexpr (is_map<T>) {
        if (toolbay_json_kind_of(from) != TOOLBAY_JSON_OBJECT) return expected("an object");
        for (std::size_t i = 0; i < toolbay_json_count(from); i++) {
            const std::string name = text(toolbay_json_key(from, i));
            std::string problem = read(toolbay_json_at(from, i), path + "." + name, value[name]);
            if (!problem.empty()) return problem;
        }
        return "";
    } else if constexpr (list<T>) {
        if (toolbay_json_kind_of(from) != TOOLBAY_JSON_ARRAY) return expected("an array");
        for (std::size_t i = 0; i < toolbay_json_count(from); i++) {
            typename T::value_type each{};
            std::string problem = read(toolbay_json_at(from, i), std::format("{}[{}]", path, i), each);
            if (!problem.empty()) return problem;
            value.push_back(std::move(each));
        }
        return "";
    } else if constexpr (object<T>) {
        if (toolbay_json_kind_of(from) != TOOLBAY_JSON_OBJECT) return expected("an object");
        std::string problem;
        each_field(value, [&]<typename Field>(std::string_view name, Field &field) {
            if (!problem.empty()) return;
            const toolbay_json *member = toolbay_json_get(from, lend(name));
            const std::string inner = path == "(root)" ? std::string(name) : std::format("{}.{}", path, name);
            if (member) {
                problem = read(member, inner, bare(field));
            } else if (!traits<Field>::optional) {
                problem = std::format("`{}` is missing", inner);
            }
        });
        return problem;
    } else {
        static_assert(has_no_shape<T>, "this type cannot be read from JSON");
    }
}

template <typename T>
std::string read_arguments(std::string_view json, T &arguments) {
    const toolbay_json *parsed = toolbay_json_parse(lend(json));
    return parsed ? read(parsed, "(root)", arguments) : "the arguments are not JSON";
}

} // namespace detail

// Returns a value as JSON.
template <typename T>
json to_json(const T &value) {
    detail::writer writer;
    writer.write(value);
    return {writer.written()};
}

// Returns a value from JSON, or an error message:
// toolbay::from_json<Settings>(text).
template <typename T>
std::expected<T, std::string> from_json(const json &json) {
    T value{};
    std::string problem = detail::read_arguments(json.text, value);
    if (!problem.empty()) return std::unexpected(std::move(problem));
    return value;
}

} // namespace toolbay
