// rosin::Error: a kind and a shared, counted text.
#include <rosin/error.hpp>

#include <atomic>

namespace rosin {

struct Error::Text {
  std::atomic<int> owners{1};
  std::string text;     // with what stands before `message`
  std::string message;  // of the op
  std::string layer;    // as it shows itself
  std::string path;
  Place place;

  void compose() {
    // Many messages of layers name them.
    const bool begins = !place.type.empty() && message.starts_with(place.type);
    const bool named = layer.empty() || begins || message.find(layer) != std::string::npos;
    text = path;
    if (!named) text += (path.empty() ? "" : ", ") + layer;
    text += (text.empty() ? "" : ": ") + message;
  }
};

const char* to_string(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::shape: return "shape";
    case ErrorKind::dtype: return "dtype";
    case ErrorKind::device: return "device";
    case ErrorKind::argument: return "argument";
    case ErrorKind::numeric: return "numeric";
    case ErrorKind::io: return "io";
    case ErrorKind::memory: return "memory";
    case ErrorKind::backend: return "backend";
    case ErrorKind::distributed: return "distributed";
    case ErrorKind::internal: return "internal";
  }
  return "unknown";
}

Error::Error(ErrorKind kind, const std::string& message)
    : kind_(kind), text_(new Text{1, message, message, {}, {}, {}}) {}

Error::Error(const Error& other) noexcept : std::exception(other), kind_(other.kind_), text_(other.text_) {
  text_->owners.fetch_add(1, std::memory_order_relaxed);
}

Error& Error::operator=(const Error& other) noexcept {
  other.text_->owners.fetch_add(1, std::memory_order_relaxed);
  if (text_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete text_;
  kind_ = other.kind_;
  text_ = other.text_;
  return *this;
}

Error::~Error() {
  if (text_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete text_;
}

const char* Error::what() const noexcept { return text_->text.c_str(); }
const std::string& Error::path() const noexcept { return text_->path; }
Error::Place Error::place() const noexcept { return text_->place; }

void Error::arose_in(const Place& layer, const std::string& shown) {
  text_->place = layer;
  text_->layer = shown;
  text_->compose();
}

void Error::arose_below(const Place& whole, const std::string& path) {
  text_->place = whole;
  const bool index_follows = !text_->path.empty() && text_->path.front() == '[';
  if (!path.empty()) text_->path = path + (text_->path.empty() || index_follows ? "" : ".") + text_->path;
  text_->compose();
}

}  // namespace rosin
