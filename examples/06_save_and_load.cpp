// 06: files. A model saved under its paths; any program that reads safetensors finds them.
// Last line: the same result after loading: yes, step 7
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

struct Model {
  Dense first{3, 8, relu};
  Dense last{8, 2};
  Array operator()(const Array& x) const { return last(first(x)); }
};

int main() {
  const Model model;
  save("example.safetensors", {{"model", model}, {"step", 7}});
  const SavedFile file = load("example.safetensors");
  for (const auto& [name, value] : file.arrays()) std::cout << name << " " << to_string(value.shape()) << "\n";

  Model other;
  int step = 0;
  load("example.safetensors", {{"model", other}, {"step", step}});

  // What does not fit changes nothing and says where.
  struct Wider {
    Dense first{3, 9, relu};
    Dense last{9, 2};
  } wider;
  try {
    loadmodel(wider, file.part("model"));
  } catch (const Error& error) {
    std::cout << error.what() << "\n";
  }

  const Array x = rand({3, 5});
  const bool equal = all(model(x) == other(x)).item<bool>();
  std::cout << "the same result after loading: " << (equal ? "yes" : "no") << ", step " << step << "\n";
}
