// The stack machine of pickles, for protocols 2 to 5. Read next: Python's Lib/pickletools.py (what opcodes mean).
#include "io/pickle.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <unordered_map>

#include <rosin/error.hpp>

namespace rosin {
namespace {

/// What calling a name means.
enum class Call : uint8_t { no, dict, sizes, tensor, parameter };

struct KnownName {
  const char* name;
  Call call;
};

/// Every class and function that may stand in a file.
constexpr KnownName known_names[] = {
    {"collections.OrderedDict", Call::dict},           {"torch.Size", Call::sizes},
    {"torch._utils._rebuild_tensor", Call::tensor},    {"torch._utils._rebuild_tensor_v2", Call::tensor},
    {"torch._utils._rebuild_tensor_v3", Call::tensor}, {"torch._utils._rebuild_parameter", Call::parameter},
};
/// Classes of storages and element types are names that nothing calls.
bool is_plain_name(std::string_view name) {
  constexpr const char* types[] = {"bool",    "uint8",   "int8",     "int16",     "uint16",
                                   "int32",   "uint32",  "int64",    "uint64",    "float16",
                                   "float32", "float64", "bfloat16", "complex64", "complex128"};
  constexpr const char* storages[] = {"Bool", "Byte",     "Char",  "Short",  "Int",          "Long",
                                      "Half", "BFloat16", "Float", "Double", "ComplexFloat", "ComplexDouble"};
  const auto is_one_of = [](std::string_view text, std::span<const char* const> list) {
    return std::any_of(list.begin(), list.end(), [&](const char* each) { return text == each; });
  };
  if (name == "torch.storage.UntypedStorage") return true;
  constexpr std::string_view module = "torch.", ending = "Storage";
  if (!name.starts_with(module)) return false;
  name.remove_prefix(module.size());
  if (is_one_of(name, types)) return true;
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  return is_one_of(name, storages);
}

const KnownName* find_call(std::string_view name) {
  const auto* found = std::find_if(std::begin(known_names), std::end(known_names),
                                   [&](const KnownName& row) { return name == row.name; });
  return found == std::end(known_names) ? nullptr : found;
}

struct RefusedOpcode {
  unsigned char code;
  const char* name;
};
/// For messages: opcodes of older protocols, of classes and of bytes.
constexpr RefusedOpcode refused_opcodes[] = {
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'I', "INT"},
    {'L', "LONG"},
    {'F', "FLOAT"},
    {'S', "STRING"},
    {'V', "UNICODE"},
    {'P', "PERSID"},
    {'i', "INST"},
    {'o', "OBJ"},
    {'p', "PUT"},
    {'g', "GET"},
    {'B', "BINBYTES"},
    {'C', "SHORT_BINBYTES"},
    {'T', "BINSTRING"},
    {'U', "SHORT_BINSTRING"},
    {0x81, "NEWOBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x8b, "LONG4"},
    {0x8e, "BINBYTES8"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x92, "NEWOBJ_EX"},
    {0x96, "BYTEARRAY8"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

std::string opcode_text(unsigned char code) {
  for (const RefusedOpcode& row : refused_opcodes) {
    if (row.code == code) return std::string("opcode ") + row.name;
  }
  constexpr char digits[] = "0123456789abcdef";
  return std::string("opcode 0x") + digits[code >> 4] + digits[code & 15];
}

class Unpickler {
 public:
  Unpickler(std::span<const unsigned char> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  PickleTree read() {
    while (step()) {}
    if (stack_.size() != 1 || !marks_.empty()) damaged("a pickle leaves one value", "there are more");
    tree_.root = stack_.back();
    return std::move(tree_);
  }

 private:
  [[noreturn]] void damaged(const std::string& rule, const std::string& what) const {
    refuse_pickle(where_, place_, rule, what);
  }
  [[noreturn]] void refuse(const std::string& what) const {
    damaged("a file of PyTorch may hold tensors, lists, dicts, texts and numbers", "it has " + what);
  }

  // --- Bytes.

  const unsigned char* take(uint64_t count) {
    if (count > bytes_.size() - at_) damaged("a pickle ends with STOP", "it is cut off");
    const unsigned char* taken = bytes_.data() + at_;
    at_ += count;
    return taken;
  }
  uint64_t number(int width) {
    const unsigned char* from = take(static_cast<uint64_t>(width));
    uint64_t value = 0;
    for (int i = width; i-- > 0;) value = value << 8 | from[i];
    return value;
  }
  std::string text(uint64_t count) {
    const auto* from = reinterpret_cast<const char*>(take(count));
    return std::string(from, static_cast<size_t>(count));
  }
  std::string line() {
    const auto rest = bytes_.subspan(static_cast<size_t>(at_));
    const auto end = std::find(rest.begin(), rest.end(), '\n');
    std::string found = text(static_cast<uint64_t>(end - rest.begin()));
    take(1);
    return found;
  }

  // --- Stack and memo.

  uint32_t make(PickleKind kind) {
    if (tree_.values.size() >= PickleTree::most_values)
      damaged("a pickle has at most 2^22 values", "this one has more");
    tree_.values.push_back({kind, 0, 0, place_, {}, {}});
    stack_.push_back(static_cast<uint32_t>(tree_.values.size() - 1));
    return stack_.back();
  }
  PickleValue& made(PickleKind kind) { return tree_.values[make(kind)]; }
  void push_integer(int64_t value) { made(PickleKind::integer).integer = value; }
  void push_boolean(bool value) { made(PickleKind::boolean).integer = value; }
  void push_text(std::string value) { made(PickleKind::text).text = std::move(value); }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleValue& top() {
    if (stack_.size() <= floor()) damaged("an opcode takes values from the stack", "there are none");
    return tree_.values[stack_.back()];
  }
  uint32_t pop() {
    top();
    const uint32_t value = stack_.back();
    stack_.pop_back();
    return value;
  }
  /// The last `count` values, in their order.
  std::vector<uint32_t> pop(size_t count) {
    if (stack_.size() - floor() < count) damaged("an opcode takes values from the stack", "there are too few");
    std::vector<uint32_t> values(stack_.end() - static_cast<ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return values;
  }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) damaged("an opcode takes values from the last mark on", "there is no mark");
    std::vector<uint32_t> values = pop(stack_.size() - marks_.back());
    marks_.pop_back();
    return values;
  }
  void push_list(std::vector<uint32_t> items) { made(PickleKind::list).items = std::move(items); }
  void push_dict(const std::vector<uint32_t>& items) {
    made(PickleKind::dict);
    add_pairs(items);
  }
  void add_items(const std::vector<uint32_t>& items) {
    PickleValue& list = top();
    if (list.kind != PickleKind::list) damaged("items go into lists", "they go into something else");
    list.items.insert(list.items.end(), items.begin(), items.end());
  }
  void add_pairs(const std::vector<uint32_t>& items) {
    PickleValue& dict = top();
    if (dict.kind != PickleKind::dict || items.size() % 2 != 0) {
      damaged("keys and values go into dicts", "there is no dict, or no value");
    }
    dict.items.insert(dict.items.end(), items.begin(), items.end());
  }
  void put(uint64_t index) {
    top();
    memo_[index] = stack_.back();
  }
  void get(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) damaged("what is fetched has been put", "number " + std::to_string(index) + " has not");
    stack_.push_back(found->second);
    if (stack_.size() > PickleTree::most_values) damaged("a stack has at most 2^22 values", "this one has more");
  }

  // --- Numbers.

  void read_long() {
    const uint64_t width = number(1);
    if (width > 8) damaged("integers have at most 64 bits", "one has " + std::to_string(8 * width));
    const uint64_t value = number(static_cast<int>(width));
    const int unused = 64 - 8 * static_cast<int>(width);
    push_integer(width == 0 ? 0 : static_cast<int64_t>(value << unused) >> unused);
  }
  void read_real() {
    const unsigned char* from = take(8);
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | from[i];
    made(PickleKind::real).real = std::bit_cast<double>(bits);
  }

  // --- Classes.

  void push_name(const std::string& module, const std::string& name) {
    const std::string full = module + "." + name;
    if (!find_call(full) && !is_plain_name(full)) refuse("the class " + full);
    made(PickleKind::name).text = full;
  }
  void read_stack_name() {
    const std::vector<uint32_t> names = pop(2);
    const PickleValue &module = tree_.values[names[0]], &name = tree_.values[names[1]];
    if (module.kind != PickleKind::text || name.kind != PickleKind::text) damaged("names are texts", "one is none");
    push_name(std::string(module.text), std::string(name.text));
  }

  void reduce() {
    const std::vector<uint32_t> taken = pop(2);
    const PickleValue &callee = tree_.values[taken[0]], &arguments = tree_.values[taken[1]];
    const KnownName* row = callee.kind == PickleKind::name ? find_call(callee.text) : nullptr;
    if (!row) refuse("a call of " + (callee.text.empty() ? std::string("something unnamed") : callee.text));
    if (arguments.kind != PickleKind::list) damaged("arguments of calls are tuples", "they are none");
    const std::vector<uint32_t> items = arguments.items;
    if (row->call == Call::dict) {
      if (!items.empty()) refuse("an OrderedDict made of arguments");
      made(PickleKind::dict);
    } else if (row->call == Call::sizes) {
      const bool one_list = items.size() == 1 && tree_.values[items[0]].kind == PickleKind::list;
      if (!one_list) refuse("a torch.Size of no tuple");
      stack_.push_back(items[0]);
    } else if (row->call == Call::parameter) {
      const bool has_tensor = !items.empty() && tree_.values[items[0]].kind == PickleKind::tensor;
      if (!has_tensor) refuse("a parameter that is no tensor");
      stack_.push_back(items[0]);
    } else {
      push_tensor(callee.text, items);
    }
  }

  /// Arguments: storage, offset, sizes, strides, then of v2 and v3 whether a gradient is required, hooks, of v3 the
  /// element type, and what else the tensor is.
  void push_tensor(const std::string& function, const std::vector<uint32_t>& items) {
    const bool third = function.ends_with("_v3");
    const size_t least = function.ends_with("_tensor") ? 4 : third ? 7 : 6;
    if (items.size() < least || items.size() > least + 1) damaged("tensors have their arguments", "one has others");
    const auto kind = [&](size_t i) { return tree_.values[items[i]].kind; };
    const bool right = kind(0) == PickleKind::storage && kind(1) == PickleKind::integer &&
                       kind(2) == PickleKind::list && kind(3) == PickleKind::list &&
                       (!third || kind(6) == PickleKind::name);
    if (!right) damaged("a tensor has a storage, an offset, sizes and strides", "one has not");
    if (items.size() > least) {
      const PickleValue& more = tree_.values[items[least]];
      if (more.kind != PickleKind::dict || !more.items.empty()) refuse("a tensor that is a conjugate or negative view");
    }
    PickleValue& tensor = made(PickleKind::tensor);
    tensor.items.assign(items.begin(), items.begin() + 4);
    if (third) tensor.items.push_back(items[6]);
  }

  void read_storage() {
    const std::vector<uint32_t> items = tree_.values[pop()].items;
    const auto is = [&](size_t i, PickleKind kind) { return tree_.values[items[i]].kind == kind; };
    const bool right = items.size() == 5 && is(0, PickleKind::text) && tree_.values[items[0]].text == "storage" &&
                       is(1, PickleKind::name) && is(2, PickleKind::text) && is(4, PickleKind::integer);
    if (!right) refuse("an outside object that is no storage");
    made(PickleKind::storage).items = items;
  }

  /// State of an OrderedDict (PyTorch notes versions of modules there) is passed by.
  void build() {
    pop();
    if (top().kind != PickleKind::dict) refuse("the state of an object that is no dict");
  }

  // --- Opcodes: one of each group of them, or not of that group.

  bool step() {
    place_ = at_;
    const unsigned char code = *take(1);
    if (code == '.') return false;
    if (read_value(code) || read_container(code) || read_memo(code) || read_class(code)) return true;
    refuse(opcode_text(code));
  }

  bool read_value(unsigned char code) {
    switch (code) {
      case 'N': made(PickleKind::none); return true;
      case 0x88: push_boolean(true); return true;
      case 0x89: push_boolean(false); return true;
      case 'J': push_integer(static_cast<int32_t>(static_cast<uint32_t>(number(4)))); return true;
      case 'K': push_integer(static_cast<int64_t>(number(1))); return true;
      case 'M': push_integer(static_cast<int64_t>(number(2))); return true;
      case 0x8a: read_long(); return true;
      case 'G': read_real(); return true;
      case 'X': push_text(text(number(4))); return true;
      case 0x8c: push_text(text(number(1))); return true;
      case 0x8d: push_text(text(number(8))); return true;
      default: return false;
    }
  }

  bool read_container(unsigned char code) {
    switch (code) {
      case '}': made(PickleKind::dict); return true;
      case ']':
      case ')': made(PickleKind::list); return true;
      case '(': marks_.push_back(stack_.size()); return true;
      case 't':
      case 'l': push_list(pop_to_mark()); return true;
      case 'd': push_dict(pop_to_mark()); return true;
      case 0x85:
      case 0x86:
      case 0x87: push_list(pop(code - 0x84u)); return true;
      case 'a': add_items(pop(1)); return true;
      case 'e': add_items(pop_to_mark()); return true;
      case 's': add_pairs(pop(2)); return true;
      case 'u': add_pairs(pop_to_mark()); return true;
      default: return false;
    }
  }

  bool read_memo(unsigned char code) {
    switch (code) {
      case 'q': put(number(1)); return true;
      case 'r': put(number(4)); return true;
      case 0x94: put(memo_.size()); return true;
      case 'h': get(number(1)); return true;
      case 'j': get(number(4)); return true;
      default: return false;
    }
  }

  bool read_class(unsigned char code) {
    switch (code) {
      case 0x80: {
        const uint64_t protocol = number(1);
        if (protocol < 2 || protocol > 5) damaged("the protocol is 2 to 5", "it is " + std::to_string(protocol));
        return true;
      }
      case 0x95: take(8); return true;  // the length of a frame
      case 'c': {
        const std::string module = line();
        push_name(module, line());
        return true;
      }
      case 0x93: read_stack_name(); return true;
      case 'R': reduce(); return true;
      case 'Q': read_storage(); return true;
      case 'b': build(); return true;
      default: return false;
    }
  }

  std::span<const unsigned char> bytes_;
  const std::string& where_;
  PickleTree tree_;
  uint64_t at_ = 0;
  uint64_t place_ = 0;  // of the opcode
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
};

}  // namespace

PickleTree read_pickle(std::span<const unsigned char> bytes, const std::string& where) {
  return Unpickler(bytes, where).read();
}

void refuse_pickle(const std::string& where, uint64_t place, const std::string& rule, const std::string& what) {
  throw Error(ErrorKind::io, "load: " + rule + "; " + where + " at byte " + std::to_string(place) + ": " + what +
                                 "; save model.state_dict() with torch.save, or write the file again");
}

}  // namespace rosin
