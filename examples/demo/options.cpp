// Reads the command line, and checks before any work that the result can be saved.
#include "options.hpp"

#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <string_view>

namespace demo {

const char* const help_text =
    R"(usage: demo [OPTIONS]
Trains a network on images of ten classes, shows its accuracy, and leaves the model and training.svg behind.

  --data DIR       a folder with MNIST's four idx files, plain or .gz (default: digits that the demo draws)
  --model NAME     mlp (784-256-10) or lenet (default: mlp)
  --epochs N       passes over the training images (default: 10, lenet 12)
  --batchsize N    images in one step (default: 64)
  --device NAME    CPU, CUDA, OpenCL, ..., or one of several: CUDA:1 (default: the first that works)
  --seed N         start of all random numbers (default: 1)
  --save FILE      where the model goes (default: mlp.safetensors or lenet.safetensors); none: nothing is kept
  --help           this text
)";

namespace {

template <class Integer> Integer number(const std::string& option, std::string_view text, Integer least) {
  Integer value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least) return value;
  throw std::invalid_argument(option + " needs a whole number of at least " + std::to_string(least) + "; got \"" +
                              std::string(text) + "\"");
}

/// "CUDA" or "CUDA:1".
void take_device(Options& options, std::string_view value) {
  const size_t colon = value.find(':');
  options.device = value.substr(0, colon);
  if (options.device.empty()) throw std::invalid_argument("--device needs a name such as CPU or CUDA:1");
  if (colon == std::string_view::npos) return;
  options.device_id = number<int>("--device: the id", value.substr(colon + 1), 0);
}

void take(Options& options, const std::string& option, const std::string& value) {
  if (option == "--data") options.data = value;
  else if (option == "--model") options.model = value;
  else if (option == "--epochs") options.epochs = number<int64_t>(option, value, 1);
  else if (option == "--batchsize") options.batchsize = number<int64_t>(option, value, 1);
  else if (option == "--device") take_device(options, value);
  else if (option == "--seed") options.seed = number<uint64_t>(option, value, 0);
  else if (option == "--save") options.save = value;
  else throw std::invalid_argument("there is no option " + option + "; --help lists them");
}

void complete(Options& options) {
  if (options.model != "mlp" && options.model != "lenet") {
    throw std::invalid_argument("--model is mlp or lenet; got \"" + options.model + "\"");
  }
  if (options.epochs == 0) options.epochs = options.model == "mlp" ? 10 : 12;
  if (options.save.empty()) options.save = options.model + ".safetensors";
  if (options.save == "none") return;
  const std::filesystem::path file(options.save);
  if (file.extension() != ".safetensors") {
    throw std::invalid_argument("--save needs a name that ends in .safetensors; got \"" + options.save + "\"");
  }
  if (file.has_parent_path() && !std::filesystem::is_directory(file.parent_path())) {
    throw std::invalid_argument("--save: there is no folder " + file.parent_path().string());
  }
}

}  // namespace

Options parse_options(int count, const char* const* arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    std::string option(arguments[i]);
    if (option == "--help" || option == "-h") {
      options.help = true;
      return options;
    }
    const size_t equals = option.find('=');
    if (equals != std::string::npos) {
      take(options, option.substr(0, equals), option.substr(equals + 1));
    } else if (i + 1 < count) {
      take(options, option, arguments[++i]);
    } else {
      throw std::invalid_argument(option + (option.starts_with("--") ? " needs a value" : " is no option") +
                                  "; --help lists the options");
    }
  }
  complete(options);
  return options;
}

}  // namespace demo
