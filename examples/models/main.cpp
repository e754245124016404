// Loads the weights of a model of PyTorch, computes one step of training, and writes what came out.
//   models NAME [KEY=VALUE...]                      prints the model
//   models NAME [KEY=VALUE...] WEIGHTS BATCH OUT    WEIGHTS as PyTorch names them (.safetensors, .pt); BATCH has x, y
// OUT has the output before the step, the loss, the gradient, and the model after a step of gradient descent, the two
// of them under PyTorch's names. A wrong argument or file: one line on stderr and exit status 2.
#include <rosin/rosin.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "bert.hpp"
#include "gpt2.hpp"
#include "mobilenet.hpp"
#include "resnet.hpp"
#include "vgg.hpp"
#include "vit.hpp"

namespace models {
namespace {

using namespace rosin;

/// The words of the command line.
struct Command {
  std::vector<std::string> files;
  std::map<std::string, double> values;

  /// The value of a key, which is used up; `otherwise` where it is not given.
  double value(const std::string& key, double otherwise) {
    const auto found = values.find(key);
    if (found == values.end()) return otherwise;
    const double given = found->second;
    values.erase(found);
    return given;
  }
  int64_t count(const std::string& key, int64_t otherwise) {
    return static_cast<int64_t>(value(key, static_cast<double>(otherwise)));
  }
};

/// How a network of images or of texts is trained: x is what goes in, y the class of each result.
struct Classified {
  template <class Model> static Array output(const Model& model, const SavedFile& batch) { return model(batch["x"]); }
  template <class Model> static Array loss(const Model& model, const SavedFile& batch) {
    const Array scores = output(model, batch);
    return logitcrossentropy(scores, onehot(batch["y"], scores.size(0)));
  }
};

/// y is what should come out for each token.
struct Encoded {
  static Array output(const Bert& model, const SavedFile& batch) {
    return model(batch["x"], batch["kinds"], batch["present"]);
  }
  static Array loss(const Bert& model, const SavedFile& batch) {
    const Array x = output(model, batch);
    return mse(x, batch["y"]) + mean(pow(model.pooled(x), 2));
  }
};

/// The file's arrays with numbers of another type, but for integers and Bool.
SavedFile converted(const SavedFile& file, DType type) {
  std::vector<NamedArray> arrays = file.arrays();
  for (NamedArray& entry : arrays) {
    if (is_float(entry.value.dtype())) entry.value = cast(entry.value, type);
  }
  return SavedFile(arrays, {});
}

template <class Task, class Model> void run(Model model, Command& command) {
  const bool precise = command.value("float64", 0) != 0;
  if (!command.values.empty()) throw std::invalid_argument("no such option: " + command.values.begin()->first);
  if (command.files.empty()) {
    std::cout << show(model) << "\nparameters: " << parameter_count(model) << "\n";
    return;
  }
  if (command.files.size() != 3) throw std::invalid_argument("three files are needed: WEIGHTS BATCH OUT");
  load(command.files[0], model, {.names = torch});
  if (precise) model = f64(model);
  const SavedFile batch = converted(load(command.files[1]), precise ? Float64 : Float32);
  const Array output = Task::output(model, batch);
  auto [loss, grad] = withgradient([&](const Model& m) { return Task::loss(m, batch); }, model);
  auto state = setup(Descent{0.1}, model);
  update(state, model, grad);
  save(command.files[2], {{"output", output}, {"loss", loss}, {"grad", grad}, {"after", model}}, {.names = torch});
}

void run(const std::string& name, Command command) {
  const auto count = [&](const char* key, int64_t otherwise) { return command.count(key, otherwise); };
  const double dropout = command.value("dropout", 0.1);
  if (name == "resnet18" || name == "resnet50") {
    const int64_t blocks = count("blocks", 0), classes = count("classes", 1000);  // 0: as many as published
    const std::array<int64_t, 4> few = {blocks, blocks, blocks, blocks};
    if (name == "resnet18") return run<Classified>(blocks ? resnet18(classes, few) : resnet18(classes), command);
    return run<Classified>(blocks ? resnet50(classes, few) : resnet50(classes), command);
  }
  if (name == "vgg11" || name == "vgg11_bn") {
    const VGGOptions options{name == "vgg11_bn", count("classes", 1000), count("hidden", 4096), dropout};
    return run<Classified>(vgg(vgg11_layers, options), command);
  }
  if (name == "mobilenet_v2") {
    const double width = command.value("width", 1);
    return run<Classified>(mobilenet_v2({.width = width, .classes = count("classes", 1000), .dropout = dropout}),
                           command);
  }
  if (name == "vit") {
    const ViTOptions options{count("image", 224), count("patch", 16),    count("layers", 12),    count("heads", 12),
                             count("width", 768), count("hidden", 3072), count("classes", 1000), dropout};
    return run<Classified>(vision_transformer(options), command);
  }
  if (name == "gpt2") {
    const GPT2Options options{count("vocabulary", 50257), count("positions", 1024), count("width", 768),
                              count("layers", 12),        count("heads", 12),       dropout};
    return run<Classified>(gpt2(options), command);
  }
  if (name == "bert") {
    const BertOptions options{
        count("vocabulary", 30522), count("positions", 512), 2,      count("width", 768), count("layers", 12),
        count("heads", 12),         count("hidden", 3072),   dropout};
    return run<Encoded>(bert(options), command);
  }
  throw std::invalid_argument("no such model: " + name +
                              "; there are resnet18 resnet50 vgg11 vgg11_bn mobilenet_v2 vit gpt2 bert");
}

Command parsed(const std::vector<std::string>& words) {
  Command command;
  for (const std::string& word : words) {
    const size_t place = word.find('=');
    if (place == std::string::npos) {
      command.files.push_back(word);
      continue;
    }
    char* end = nullptr;
    const double value = std::strtod(word.c_str() + place + 1, &end);
    if (*end != '\0' || end == word.c_str() + place + 1) throw std::invalid_argument("no number: " + word);
    command.values[word.substr(0, place)] = value;
  }
  return command;
}

}  // namespace
}  // namespace models

int main(int count, char** words) {
  try {
    if (count < 2) throw std::invalid_argument("models NAME [KEY=VALUE...] [WEIGHTS BATCH OUT]");
    models::run(words[1], models::parsed({words + 2, words + count}));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "models: %s\n", error.what());
    return 2;
  }
}
