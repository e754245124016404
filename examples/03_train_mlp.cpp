// 03: the program of the README: a model is a struct, a device a value, a training step one program.
// Last line: more than nine of ten right: yes
#include <rosin/rosin.hpp>

#include <filesystem>
#include <iostream>

using namespace rosin;

// Any aggregate of layers is a model; fields are found by reflection, with their names.
struct MLP {
  Dense hidden{784, 256, relu};
  Dense out{256, 10};
  Array operator()(const Array& x) const { return out(hidden(x)); }
};

int main() {
  seed(1);
  const auto [images, labels] = image_arrays(draw_digits(20000, 1));
  const Array X = flatten(images), Y = onehotbatch(labels, 10);

  Device device = get_device({.verbose = true});  // CUDA, AMDGPU, Metal, an OpenCL GPU, else CPU
  auto model = MLP{} | device;
  auto state = setup(Adam{.eta = 1e-3}, model);
  auto loader = DataLoader(std::tuple{X, Y}, {.batchsize = 64, .shuffle = true}) | device;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto [x, y] : loader) {
      auto [loss, grad] = withgradient([&](const MLP& m) { return logitcrossentropy(m(x), y); }, model);
      update(state, model, grad);  // one recorded, fused, cached program per step
    }
  }
  save("mlp.safetensors", model);

  const auto [other_images, other_labels] = image_arrays(draw_digits(2000, 2));
  const double right = mean(onecold(model(flatten(other_images))) == other_labels).item();
  std::cout << "accuracy " << right << ", " << std::filesystem::file_size("mlp.safetensors") << " bytes saved\n";
  std::cout << "more than nine of ten right: " << (right > 0.9 ? "yes" : "no") << "\n";
}
