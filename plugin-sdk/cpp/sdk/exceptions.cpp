// The implementation of `throw` in a plugin.
//
// WebAssembly in Toolbay has no exceptions: the stack cannot be unwound, so no
// `catch` ever runs. A `throw` therefore ends the call, with the message of the
// thrown object. The compiler still calls the functions of the C++ ABI for
// exceptions, which its library leaves out for WebAssembly. They are defined
// here, as is the abort handler of libc++, for the bounds that it checks and for
// the exceptions that it would throw itself.

#ifdef __wasm__

#include <cxxabi.h>

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <typeinfo>

#include "c/toolbay.h"

// The classes of type_info, with the names and the layout of the Itanium C++ ABI,
// section 2.9.5. The virtual table identifies the class of an object.
extern "C" {
extern const void *_ZTVN10__cxxabiv120__si_class_type_infoE[];
extern const void *_ZTVN10__cxxabiv121__vmi_class_type_infoE[];
}

namespace {

struct si_class : std::type_info {
    const std::type_info *base;
};

struct vmi_class : std::type_info {
    struct base_class {
        const std::type_info *type;
        long offset_and_flags;
    };
    enum : long { is_virtual = 1, is_public = 2, offset_shift = 8 };
    unsigned flags;
    unsigned count;
    base_class bases[1];
};

template <typename Class>
const Class *as(const std::type_info &type, const void *const *table) {
    // An object's pointer to its virtual table skips the first two words of the
    // table.
    const void *const *of_type = *reinterpret_cast<const void *const *const *>(&type);
    return of_type == table + 2 ? static_cast<const Class *>(&type) : nullptr;
}

// Returns the std::exception in an object of this type, or null.
const std::exception *exception_in(const std::type_info &type, const char *object) {
    if (type == typeid(std::exception)) return reinterpret_cast<const std::exception *>(object);
    if (const auto *derived = as<si_class>(type, _ZTVN10__cxxabiv120__si_class_type_infoE)) {
        return exception_in(*derived->base, object);
    }
    if (const auto *derived = as<vmi_class>(type, _ZTVN10__cxxabiv121__vmi_class_type_infoE)) {
        for (unsigned i = 0; i < derived->count; i++) {
            const vmi_class::base_class &base = derived->bases[i];
            if (!(base.offset_and_flags & vmi_class::is_public)) continue;
            long offset = base.offset_and_flags >> vmi_class::offset_shift;
            if (base.offset_and_flags & vmi_class::is_virtual) {
                const char *table = *reinterpret_cast<const char *const *>(object);
                offset = *reinterpret_cast<const long *>(table + offset);
            }
            if (const std::exception *found = exception_in(*base.type, object + offset)) return found;
        }
    }
    return nullptr;
}

std::string message_of(const std::type_info &type, const void *object) {
    if (const std::exception *exception = exception_in(type, static_cast<const char *>(object))) {
        return exception->what();
    }
    if (type == typeid(std::string)) return *static_cast<const std::string *>(object);
    if (type == typeid(const char *)) return *static_cast<const char *const *>(object);
    if (type == typeid(int)) return "the exception " + std::to_string(*static_cast<const int *>(object));
    int status = 0;
    const char *name = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
    return std::string("an exception of type ") + (name ? name : type.name());
}

} // namespace

extern "C" {

void *__cxa_allocate_exception(size_t size) noexcept {
    return ::operator new(size);
}

// Called if a constructor throws while its exception is created. That throw has
// already ended the call.
void __cxa_free_exception(void *) noexcept {}

void __cxa_throw(void *object, std::type_info *type, void *(*)(void *)) {
    toolbay_panic("%s", message_of(*type, object).c_str());
}

void __cxa_rethrow() {
    toolbay_panic("an exception was thrown again");
}

} // extern "C"

namespace std {

void __libcpp_verbose_abort(const char *format, ...) noexcept {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    toolbay_panic("%s", message);
}

} // namespace std

#endif
