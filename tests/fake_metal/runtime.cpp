// See runtime.hpp.
#include "runtime.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "machine.hpp"
#include "objects.hpp"

namespace fake_metal {

struct Name {
  std::string text;
};

struct Class {
  Object self;  // to which its own messages go
  std::string name;
  std::map<Selector, Method> methods, own;
  int64_t living = 0;
};

namespace {

/// Never destroyed: plug-ins give things back while the process exits.
struct Everything {
  std::recursive_mutex lock;
  std::map<std::string, std::unique_ptr<Name>> names;
  std::map<std::string, std::unique_ptr<Class>> classes;
};
Everything& everything() {
  static Everything* all = new Everything;
  return *all;
}

thread_local std::vector<std::vector<Object*>> pools;
thread_local bool failing = false;

Selector name_of(const char* text) {
  auto& known = everything().names[text];
  if (!known) known = std::make_unique<Name>(Name{text});
  return known.get();
}

std::string called(const Object* object, Selector selector) {
  const bool is_class = !object->isa;
  const std::string name = is_class ? reinterpret_cast<const Class*>(object)->name : object->isa->name;
  return (is_class ? "+[" : "-[") + name + " " + selector->text + "]";
}

/// One object that lives until its references are given back.
const Class& class_of(const Object* object) {
  return object->isa ? *object->isa : *reinterpret_cast<const Class*>(object);
}

void end(Object* object) {
  object->is_dead = true;
  --const_cast<Class*>(object->isa)->living;
  const std::unique_ptr<State> last = std::move(object->state);
}

}  // namespace

void misuse(const std::string& what) {
  std::fprintf(stderr, "fake_metal: %s\n", what.c_str());
  std::abort();
}

std::recursive_mutex& lock() { return everything().lock; }

Class& class_named(const std::string& name) {
  auto& known = everything().classes[name];
  if (!known) {
    known = std::make_unique<Class>();
    known->name = name;
  }
  return *known;
}

void add_method(Class& of, const char* selector, Method method, bool of_class) {
  (of_class ? of.own : of.methods)[name_of(selector)] = method;
}

Object* made(const char* of, std::unique_ptr<State> state) {
  Class& its = class_named(of);
  ++its.living;
  auto* object = new Object;  // which stays for ever
  object->isa = &its;
  object->state = std::move(state);
  return object;
}

Object* retain(Object* object) {
  const Guard guard(lock());
  if (object->is_dead) misuse("retain of an object of " + class_of(object).name + " that has been released by all");
  ++object->references;
  return object;
}

void release(Object* object) {
  const Guard guard(lock());
  if (object->is_dead) misuse("an object of " + class_of(object).name + " is released more often than retained");
  if (--object->references == 0) end(object);
}

Object* autoreleased(Object* object) {
  if (object && pools.empty()) misuse("an object of " + class_of(object).name + " is autoreleased without a pool");
  if (object) pools.back().push_back(object);
  return object;
}

bool fails() { return std::exchange(failing, false); }

bool counted(const char* function) {
  fake::Machine& machine = fake::Machine::instance();
  const int64_t number = ++machine.calls.try_emplace(function, 0).first->second;
  const auto found = machine.options.fails.find(function);
  return found != machine.options.fails.end() && found->second.contains(number);
}

Method method_for(Object* object, Selector selector) {
  const Guard guard(lock());
  if (object->is_dead) misuse(called(object, selector) + " to an object that has been released by all");
  failing = counted(selector->text.c_str());
  const Class& its = class_of(object);
  const auto& methods = object->isa ? its.methods : its.own;
  if (const auto found = methods.find(selector); found != methods.end()) return found->second;
  const auto& of_all = class_named("NSObject").methods;
  if (const auto found = of_all.find(selector); found != of_all.end()) return found->second;
  misuse(called(object, selector) + ": unrecognized selector");
}

bool responds(Object* object, Selector selector) { return class_of(object).methods.contains(selector); }

const std::string& name_of_class(Object* of) { return class_of(of).name; }

std::string living() {
  std::string text;
  for (const auto& [name, one] : everything().classes) {
    if (one->living > 0) text += name + " " + std::to_string(one->living) + "\n";
  }
  return text;
}

}  // namespace fake_metal

using namespace fake_metal;

#define FAKE_OBJC_API extern "C" __attribute__((visibility("default")))

FAKE_OBJC_API Object* objc_getClass(const char* name) {
  define_classes();
  const Guard guard(lock());
  const auto found = everything().classes.find(name);
  return found == everything().classes.end() ? nullptr : &found->second->self;
}

FAKE_OBJC_API Selector sel_registerName(const char* name) {
  const Guard guard(lock());
  return name_of(name);
}

FAKE_OBJC_API Object* objc_retain(Object* object) { return object ? retain(object) : nullptr; }
FAKE_OBJC_API void objc_release(Object* object) {
  if (object) release(object);
}

FAKE_OBJC_API void* objc_autoreleasePoolPush() {
  pools.emplace_back();
  return reinterpret_cast<void*>(pools.size());
}

FAKE_OBJC_API void objc_autoreleasePoolPop(void* pool) {
  if (pool != reinterpret_cast<void*>(pools.size())) misuse("pools are popped in another order than pushed");
  const std::vector<Object*> last = std::move(pools.back());
  pools.pop_back();
  for (Object* object : last) release(object);
}

extern "C" __attribute__((visibility("hidden"))) Method fake_method_for(Object* object, Selector selector) {
  return method_for(object, selector);
}

// Finds the method and jumps to it with all arguments as they came, wherever they are: so it takes any. To nil it
// answers 0.
extern "C" __attribute__((visibility("default"))) void objc_msgSend();
#if defined(__x86_64__)
asm(R"(
.text
.globl objc_msgSend
.type objc_msgSend, @function
objc_msgSend:
  testq %rdi, %rdi
  je 1f
  pushq %rbp
  movq %rsp, %rbp
  subq $176, %rsp
  movq %rdi, (%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movups %xmm0, 48(%rsp)
  movups %xmm1, 64(%rsp)
  movups %xmm2, 80(%rsp)
  movups %xmm3, 96(%rsp)
  movups %xmm4, 112(%rsp)
  movups %xmm5, 128(%rsp)
  movups %xmm6, 144(%rsp)
  movups %xmm7, 160(%rsp)
  call fake_method_for
  movq %rax, %r11
  movq (%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  movq 24(%rsp), %rcx
  movq 32(%rsp), %r8
  movq 40(%rsp), %r9
  movups 48(%rsp), %xmm0
  movups 64(%rsp), %xmm1
  movups 80(%rsp), %xmm2
  movups 96(%rsp), %xmm3
  movups 112(%rsp), %xmm4
  movups 128(%rsp), %xmm5
  movups 144(%rsp), %xmm6
  movups 160(%rsp), %xmm7
  leave
  jmp *%r11
1:
  xorl %eax, %eax
  xorps %xmm0, %xmm0
  ret
.size objc_msgSend, .-objc_msgSend
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl objc_msgSend
.type objc_msgSend, %function
objc_msgSend:
  cbz x0, 1f
  stp x29, x30, [sp, #-16]!
  mov x29, sp
  sub sp, sp, #208
  stp x0, x1, [sp]
  stp x2, x3, [sp, #16]
  stp x4, x5, [sp, #32]
  stp x6, x7, [sp, #48]
  str x8, [sp, #64]
  stp q0, q1, [sp, #80]
  stp q2, q3, [sp, #112]
  stp q4, q5, [sp, #144]
  stp q6, q7, [sp, #176]
  bl fake_method_for
  mov x16, x0
  ldp x0, x1, [sp]
  ldp x2, x3, [sp, #16]
  ldp x4, x5, [sp, #32]
  ldp x6, x7, [sp, #48]
  ldr x8, [sp, #64]
  ldp q0, q1, [sp, #80]
  ldp q2, q3, [sp, #112]
  ldp q4, q5, [sp, #144]
  ldp q6, q7, [sp, #176]
  mov sp, x29
  ldp x29, x30, [sp], #16
  br x16
1:
  movi d0, #0
  ret
.size objc_msgSend, .-objc_msgSend
)");
#endif

/// For tests: a line for each message and function with the number of its calls, then one for each class with the
/// number of its objects that live.
FAKE_OBJC_API const char* fake_metal_counts() {
  static std::string text;
  const Guard guard(lock());
  text.clear();
  for (const auto& [name, count] : fake::Machine::instance().calls) text += name + " " + std::to_string(count) + "\n";
  text += living();
  return text.c_str();
}
