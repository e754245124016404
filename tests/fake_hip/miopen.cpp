// The functions of MIOpen's stand-in. What the real library takes quietly and punishes late, or says on the standard
// error alone, is an error at once. See README.md. Read first: miopen.hpp, miopen_problem.cpp.
#include "miopen.hpp"

#include <cstring>
#include <functional>
#include <memory>
#include <utility>

#include "stand_in.hpp"

#define FAKE_MIOPEN_API extern "C" __attribute__((visibility("default"))) int

using namespace fake_miopen;
using fake::cuda;
using fake::Trouble;
using miopen::Measured;
using miopen::Solution;

namespace {

int status_of(int code) {
  switch (code) {
    case fake::success: return miopen::success;
    case fake::out_of_memory: return miopen::allocation_failed;
    case fake::not_supported: return miopen::not_implemented;
    case fake::invalid_value:
    case fake::invalid_handle:
    case fake::invalid_context: return miopen::bad_parameter;
    default: return miopen::unknown_error;
  }
}

int call(const char* name, const std::function<void()>& f) {
  std::string said = std::string(name) + " fails as FAKE_HIP asks";  // where nothing else is said
  const int code = cuda().call(name, f, &said);
  if (code != fake::success) {
    fake::note((code == fake::not_supported ? "refused in " : "error in ") + std::string(name) + ": " + said);
  }
  return status_of(code);
}

/// Objects by the addresses that the program has.
template <class T> class Known {
 public:
  void* add(T one) {
    auto made = std::make_unique<T>(std::move(one));
    void* const address = made.get();
    all_.emplace(address, std::move(made));
    return address;
  }
  T& at(const void* address) const {
    const auto found = all_.find(address);
    if (found == all_.end()) wrong("an object that is not there, or no more");
    return *found->second;
  }
  void remove(const void* address) {
    at(address);
    all_.erase(address);
  }

 private:
  std::map<const void*, std::unique_ptr<T>> all_;
};

Known<Handle> handles;
Known<Tensor> tensors;
Known<Window> windows;

Handle& handle_now(const void* handle) {
  Handle& one = handles.at(handle);
  if (one.context != cuda().thread_context()) throw Trouble{fake::invalid_context, "a handle of another device"};
  return one;
}

/// Questions take a while, and compile: nothing for a capture.
Handle& handle_for_questions(const void* handle) {
  if (cuda().thread_captures()) wrong("a question while a stream is captured");
  return handle_now(handle);
}

Problem problem_of(Direction direction, const void* first, const void* second, const void* window, const void* result) {
  return fake_miopen::problem_of(direction, tensors.at(first), tensors.at(second), windows.at(window),
                                 tensors.at(result));
}

std::string numbered(const Problem& problem, uint64_t id) { return problem.text() + " solver " + std::to_string(id); }

/// The arrays get their addresses, all of which lie in blocks of the device.
std::vector<uint64_t> checked_addresses(fake_dnn::Convolution& c, Direction direction, const void* first,
                                        const void* second, const void* result) {
  const bool forward = direction == Direction::forward, data = direction == Direction::data;
  c.x.address = reinterpret_cast<uint64_t>(data ? result : second);
  c.w.address = reinterpret_cast<uint64_t>(forward ? first : data ? second : result);
  c.y.address = reinterpret_cast<uint64_t>(forward ? result : first);
  std::vector<uint64_t> all;
  const std::vector<fake_dnn::Tensor*> stored = c.stored();
  for (const fake_dnn::Tensor* tensor : stored) {
    if (tensor->address % static_cast<uint64_t>(tensor->alignment) != 0) wrong("an address that is not aligned");
    cuda().check_memory(tensor->address, tensor->reach());
    all.push_back(tensor->address);
  }
  const fake_dnn::Tensor& written = *stored.back();
  for (size_t i = 0; i + 1 < stored.size(); ++i) {
    const fake_dnn::Tensor& other = *stored[i];
    const bool overlap =
        other.address < written.address + written.reach() && written.address < other.address + other.reach();
    if (overlap) wrong("a result over an operand");
  }
  return all;
}

/// The first element gets one more than it should have.
void spoil(const fake_dnn::Tensor& result) {
  const fake::Element type = fake_dnn::element_of(result.type);
  fake::write_element(type, result.address, 0, fake::read_element(type, result.address, 0) + 1);
}

void check_room(const void* room, size_t bytes, uint64_t needed) {
  if (bytes < needed || (needed > 0 && !room)) wrong("less room than the solver needs");
  if (needed > 0) cuda().check_memory(reinterpret_cast<uint64_t>(room), needed);
}

void give(Handle& handle, const Problem& problem, const Solver& solver, std::vector<uint64_t> addresses, void* room) {
  fake::Work work;
  work.what = "solver " + numbered(problem, solver.id);
  work.time = solver.time;
  work.addresses = std::move(addresses);
  const uint64_t bytes = problem.room(solver);
  if (bytes > 0) work.addresses.push_back(reinterpret_cast<uint64_t>(room));
  work.run = [c = problem.convolution, room, bytes, spoils = cuda().options().wrong == "miopen"]() mutable {
    if (bytes > 0) std::memset(room, 0xA5, bytes);
    compute(c);
    if (spoils) spoil(*c.stored().back());
  };
  fake::note(numbered(problem, solver.id));
  cuda().give(handle.stream, std::move(work));
}

// ---- What is there once for each direction.

int solutions(Direction direction, const char* name, const void* handle, const void* first, const void* second,
              const void* window, const void* result, size_t most, size_t* count, Solution* all) {
  return call(name, [&] {
    Handle& one = handle_for_questions(handle);
    const Problem problem = problem_of(direction, first, second, window, result);
    *count = 0;
    for (const Solver& solver : solvers_for(problem, one.measured.contains(problem.text()))) {
      if (*count == most) break;
      all[(*count)++] = {solver.guess, problem.room(solver), solver.id, solver.algorithm};
    }
  });
}

int workspace(Direction direction, const char* name, const void* handle, const void* first, const void* second,
              const void* window, const void* result, uint64_t id, size_t* bytes) {
  return call(name, [&] {
    handle_for_questions(handle);
    const Problem problem = problem_of(direction, first, second, window, result);
    *bytes = problem.room(solver_numbered(id, problem));
  });
}

int compile(Direction direction, const char* name, const void* handle, const void* first, const void* second,
            const void* window, const void* result, uint64_t id) {
  return call(name, [&] {
    Handle& one = handle_for_questions(handle);
    const Problem problem = problem_of(direction, first, second, window, result);
    if (solver_numbered(id, problem).refuses) throw Trouble{fake::not_supported, "a solver that does not compile"};
    one.compiled.insert(numbered(problem, id));
  });
}

int run(Direction direction, const char* name, const void* handle, const void* first_form, const void* first,
        const void* second_form, const void* second, const void* window, const void* result_form, void* result,
        void* room, size_t bytes, uint64_t id) {
  return call(name, [&] {
    Handle& one = handle_now(handle);
    Problem problem = problem_of(direction, first_form, second_form, window, result_form);
    const Solver solver = solver_numbered(id, problem);
    if (!one.compiled.contains(numbered(problem, id))) wrong("a solver that would be compiled first");
    check_room(room, bytes, problem.room(solver));
    std::vector<uint64_t> addresses = checked_addresses(problem.convolution, direction, first, second, result);
    give(one, problem, solver, std::move(addresses), room);
  });
}

/// Measures those that have the room for it, with the arrays that are given.
int find(Direction direction, const char* name, const void* handle, const void* first_form, const void* first,
         const void* second_form, const void* second, const void* window, const void* result_form, void* result,
         int most, int* count, Measured* all, void* room, size_t bytes) {
  return call(name, [&] {
    Handle& one = handle_for_questions(handle);
    Problem problem = problem_of(direction, first_form, second_form, window, result_form);
    const std::vector<uint64_t> addresses = checked_addresses(problem.convolution, direction, first, second, result);
    *count = 0;
    for (const Solver& solver : solvers_for(problem, true)) {
      if (solver.refuses || problem.room(solver) > bytes || *count == most) continue;
      if (problem.room(solver) > 0) check_room(room, bytes, problem.room(solver));
      give(one, problem, solver, addresses, room);
      all[(*count)++] = {solver.algorithm, static_cast<float>(solver.time), problem.room(solver)};
    }
    if (*count == 0) throw Trouble{fake::not_supported, "no solver has the room it needs"};
    one.measured.insert(problem.text());
    fake::note("measured: " + problem.text());
  });
}

}  // namespace

// `find_first`, `find_second`: how the function that measures has the two operands.
#define FAKE_MIOPEN_DIRECTION(which, name, measures, find_first, find_second)                                         \
  FAKE_MIOPEN_API name##GetSolution(void* handle, void* first, void* second, void* window, void* result, size_t most, \
                                    size_t* count, Solution* all) {                                                   \
    return solutions(which, #name "GetSolution", handle, first, second, window, result, most, count, all);            \
  }                                                                                                                   \
  FAKE_MIOPEN_API name##GetSolutionWorkspaceSize(void* handle, void* first, void* second, void* window, void* result, \
                                                 uint64_t id, size_t* bytes) {                                        \
    return workspace(which, #name "GetSolutionWorkspaceSize", handle, first, second, window, result, id, bytes);      \
  }                                                                                                                   \
  FAKE_MIOPEN_API name##CompileSolution(void* handle, void* first, void* second, void* window, void* result,          \
                                        uint64_t id) {                                                                \
    return compile(which, #name "CompileSolution", handle, first, second, window, result, id);                        \
  }                                                                                                                   \
  FAKE_MIOPEN_API name##Immediate(void* handle, void* first_form, const void* first, void* second_form,               \
                                  const void* second, void* window, void* result_form, void* result, void* room,      \
                                  size_t bytes, uint64_t id) {                                                        \
    return run(which, #name "Immediate", handle, first_form, first, second_form, second, window, result_form, result, \
               room, bytes, id);                                                                                      \
  }                                                                                                                   \
  FAKE_MIOPEN_API measures(void* handle, void* one_form, const void* one, void* other_form, const void* other,        \
                           void* window, void* result_form, void* result, int most, int* count, Measured* all,        \
                           void* room, size_t bytes, bool) {                                                          \
    return find(which, #measures, handle, find_first##_form, find_first, find_second##_form, find_second, window,     \
                result_form, result, most, count, all, room, bytes);                                                  \
  }

FAKE_MIOPEN_DIRECTION(Direction::forward, miopenConvolutionForward, miopenFindConvolutionForwardAlgorithm, other, one)
FAKE_MIOPEN_DIRECTION(Direction::data, miopenConvolutionBackwardData, miopenFindConvolutionBackwardDataAlgorithm, one,
                      other)
FAKE_MIOPEN_DIRECTION(Direction::weights, miopenConvolutionBackwardWeights,
                      miopenFindConvolutionBackwardWeightsAlgorithm, one, other)

FAKE_MIOPEN_API miopenGetVersion(size_t* major, size_t* minor, size_t* patch) {
  const auto version = static_cast<size_t>(cuda().options().miopen);
  *major = version / 10000;
  *minor = version / 100 % 100;
  *patch = version % 100;
  return miopen::success;
}

extern "C" __attribute__((visibility("default"))) const char* miopenGetErrorString(int status) {
  switch (status) {
    case miopen::success: return "miopenStatusSuccess";
    case miopen::bad_parameter: return "miopenStatusBadParm";
    case miopen::allocation_failed: return "miopenStatusAllocFailed";
    case miopen::not_implemented: return "miopenStatusNotImplemented";
    default: return "miopenStatusUnknownError";
  }
}

FAKE_MIOPEN_API miopenCreate(void** handle) {
  return call("miopenCreate", [&] { *handle = handles.add({cuda().thread_context(), nullptr, {}, {}}); });
}

FAKE_MIOPEN_API miopenDestroy(void* handle) {
  return call("miopenDestroy", [&] {
    handle_now(handle);
    handles.remove(handle);
  });
}

FAKE_MIOPEN_API miopenSetStream(void* handle, void* stream) {
  return call("miopenSetStream", [&] { handle_now(handle).stream = stream; });
}

FAKE_MIOPEN_API miopenCreateTensorDescriptor(void** tensor) {
  return call("miopenCreateTensorDescriptor", [&] { *tensor = tensors.add({}); });
}

FAKE_MIOPEN_API miopenDestroyTensorDescriptor(void* tensor) {
  return call("miopenDestroyTensorDescriptor", [&] { tensors.remove(tensor); });
}

FAKE_MIOPEN_API miopenSetNdTensorDescriptorWithLayout(void* tensor, miopen::Type type, miopen::Layout layout,
                                                      const int* sizes, int rank) {
  return call("miopenSetNdTensorDescriptorWithLayout", [&] {
    const bool three = layout == miopen::Layout::planes_of_three || layout == miopen::Layout::channels_first_of_three;
    const bool two = layout == miopen::Layout::planes || layout == miopen::Layout::channels_first;
    if (!(rank == 4 && two) && !(rank == 5 && three)) wrong("an order of other dims");
    const auto number = static_cast<int>(type);
    if (number != 0 && number != 1 && number != 5) wrong("no such type");
    Tensor made{type, layout, {sizes, sizes + rank}};
    for (const int64_t size : made.sizes) {
      if (size < 1) wrong("an array with sizes below 1");
    }
    tensors.at(tensor) = std::move(made);
  });
}

FAKE_MIOPEN_API miopenCreateConvolutionDescriptor(void** window) {
  return call("miopenCreateConvolutionDescriptor", [&] { *window = windows.add({}); });
}

FAKE_MIOPEN_API miopenDestroyConvolutionDescriptor(void* window) {
  return call("miopenDestroyConvolutionDescriptor", [&] { windows.remove(window); });
}

FAKE_MIOPEN_API miopenInitConvolutionNdDescriptor(void* window, int spatial, const int* pads, const int* strides,
                                                  const int* dilations, int mode) {
  return call("miopenInitConvolutionNdDescriptor", [&] {
    if (spatial != 2 && spatial != 3) wrong("a window of so many dims");
    if (mode != 0) wrong("no cross-correlation");
    for (int d = 0; d < spatial; ++d) {
      if (pads[d] < 0 || strides[d] < 1 || dilations[d] < 1) wrong("a window with numbers that are too small");
    }
    windows.at(window) = {
        {pads, pads + spatial}, {strides, strides + spatial}, {dilations, dilations + spatial}, 1, {}};
  });
}

FAKE_MIOPEN_API miopenSetConvolutionGroupCount(void* window, int groups) {
  return call("miopenSetConvolutionGroupCount", [&] { windows.at(window).groups = groups; });
}

FAKE_MIOPEN_API miopenSetConvolutionAttribute(void* window, miopen::Attribute which, int value) {
  return call("miopenSetConvolutionAttribute", [&] {
    const bool rounds = which == miopen::Attribute::float16_as_bfloat16;
    if (!rounds && which != miopen::Attribute::deterministic) wrong("an attribute that windows do not have");
    if (value < (rounds ? -1 : 0) || value > 1) wrong("no such value of an attribute");
    windows.at(window).attributes[which] = value;
  });
}
