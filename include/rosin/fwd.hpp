// Declarations of the classes that stand in interfaces; include the header of a class to use it.
#pragma once

namespace rosin {

class Array;
class Buffer;
class Chain;
class Device;
class Error;
class Layer;
class ModelEdit;
class ModelEditor;
class ModelPath;
class ModelView;
class ModelVisitor;
class Progress;
class Rng;
class Shape;
class State;

}  // namespace rosin
