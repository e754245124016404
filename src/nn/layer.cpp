// Erased layers, and the mode in which layers work.
#include <rosin/layer.hpp>

#include <rosin/error.hpp>

#include "graph/context.hpp"
#include "model/locate.hpp"

namespace rosin {

bool is_training(LayerMode mode) noexcept {
  if (mode != LayerMode::automatic) return mode == LayerMode::train;
  const Context* context = Context::current_or_null();
  return context && context->in_gradient();
}

namespace {

ModelPart part_of_function(const FunctionLayer& layer) {
  ModelPart part;
  part.type = function_name(layer.function);
  part.object = &layer;
  return part;
}

}  // namespace

Array Layer::operator()(const Array& x) const {
  return table_ ? located(*this, [&] { return table_->call(object_, x); }) : x;
}

Arrays Layer::operator()(std::span<const Array> inputs) const {
  if (!table_) return Arrays(inputs.begin(), inputs.end());
  return located(*this, [&] { return table_->call_list(object_, inputs); });
}

void FunctionLayer::rosin_visit(ModelVisitor& visitor, const ModelPath& path) const {
  visitor.leaf(part_of_function(*this), path);
}
void FunctionLayer::rosin_visit(ModelEditor& editor, const ModelPath& path) {
  editor.leaf(part_of_function(*this), path);
}

namespace reflect {

void refuse_inputs(std::string_view layer, size_t count) {
  throw Error(ErrorKind::argument, std::string(layer) + ": a layer takes as many arrays as its call operator; got " +
                                       std::to_string(count) + "; use Parallel to split them, or another layer");
}

Array only_array(const Arrays& list, std::string_view layer) {
  if (list.size() == 1) return list.front();
  throw Error(ErrorKind::argument, std::string(layer) + ": one array is expected here; got a layer that gives " +
                                       std::to_string(list.size()) +
                                       "; call it with a list, or join them by Parallel(f, ...)");
}

}  // namespace reflect
}  // namespace rosin
