// Runs the programs of a corpus on its samples, and leaves what they give for `goldens thaw CORPUS --outputs OUTPUTS`.
//
//   replay CORPUS OUTPUTS [PREFIX]
//
// PREFIX takes only the samples whose folders begin with it, e.g. xnnpack-int8/. CORPUS/replay.txt says what is run; its form
// is in docs/plugins/field.md. An output is written as output-<i>.npy, and where NumPy's format does not have its dtype or its order
// in memory, as output-<i>.bin: the bytes as they are in memory. Ends with 1 where a sample did not run, with 2 where there
// is none.

#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <executorch/runtime/core/exec_aten/util/dim_order_util.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fs = std::filesystem;
using executorch::aten::ScalarType;
using executorch::aten::SizesType;
using executorch::aten::Tensor;
using executorch::extension::make_tensor_ptr;
using executorch::extension::Module;
using executorch::extension::TensorPtr;
using executorch::runtime::EValue;

namespace {

struct Input {
  std::vector<SizesType> shape;
  fs::path file;
};

struct Step {
  std::string method;
  std::vector<Input> inputs;
};

// A program's files: the .pte, and the .ptd that it needs.
struct Program {
  fs::path file;
  std::vector<std::string> data;
};

struct Sample {
  std::string folder;
  std::vector<Step> steps;
};

std::vector<uint8_t> bytes(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw std::runtime_error(file.string() + " cannot be read");
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

// "2,3" is {2, 3}, and "-" is the shape of a single number.
std::vector<SizesType> shape_of(const std::string& text) {
  std::vector<SizesType> shape;
  std::istringstream stream(text == "-" ? "" : text);
  for (std::string extent; std::getline(stream, extent, ',');) {
    shape.push_back(std::stoi(extent));
  }
  return shape;
}

// NumPy's name of a dtype, or nullptr.
const char* descr(ScalarType type) {
  static const std::map<ScalarType, const char*> known = {
      {ScalarType::Bool, "|b1"},
      {ScalarType::Char, "|i1"},
      {ScalarType::Byte, "|u1"},
      {ScalarType::Short, "<i2"},
      {ScalarType::UInt16, "<u2"},
      {ScalarType::Half, "<f2"},
      {ScalarType::Int, "<i4"},
      {ScalarType::UInt32, "<u4"},
      {ScalarType::Float, "<f4"},
      {ScalarType::Long, "<i8"},
      {ScalarType::UInt64, "<u8"},
      {ScalarType::Double, "<f8"},
  };
  const auto found = known.find(type);
  return found == known.end() ? nullptr : found->second;
}

// The header of NumPy's format, version 1.0.
std::string header(const Tensor& tensor) {
  std::string fields = "{'descr': '" + std::string(descr(tensor.scalar_type())) +
      "', 'fortran_order': False, 'shape': (";
  for (const auto extent : tensor.sizes()) {
    fields += std::to_string(extent) + ",";
  }
  fields += "), }";
  const size_t begin = 10;
  fields.append(63 - (begin + fields.size()) % 64, ' ');
  fields += '\n';
  std::string all("\x93NUMPY\x01\x00", 8);
  all += static_cast<char>(fields.size() & 0xff);
  all += static_cast<char>(fields.size() >> 8);
  return all + fields;
}

void write(const Tensor& tensor, const fs::path& stem) {
  const auto order = tensor.dim_order();
  const bool in_npy = descr(tensor.scalar_type()) != nullptr &&
      executorch::runtime::is_contiguous_dim_order(order.data(), order.size());
  const fs::path file = stem.string() + (in_npy ? ".npy" : ".bin");
  std::ofstream stream(file, std::ios::binary);
  if (in_npy) {
    stream << header(tensor);
  }
  stream.write(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes());
  if (!stream.flush()) {
    throw std::runtime_error(file.string() + " cannot be written");
  }
}

// A step's inputs as tensors over `data`, in the order in memory that the program has for them.
std::vector<EValue> inputs_of(
    Module& module, const Step& step, std::vector<std::vector<uint8_t>>& data, std::vector<TensorPtr>& tensors) {
  const auto meta = module.method_meta(step.method);
  if (!meta.ok() || meta->num_inputs() != step.inputs.size()) {
    throw std::runtime_error("the program has no method " + step.method + " of these inputs");
  }
  std::vector<EValue> values;
  for (size_t index = 0; index < step.inputs.size(); ++index) {
    const auto input = meta->input_tensor_meta(index);
    if (!input.ok()) {
      throw std::runtime_error("input " + std::to_string(index) + " is no tensor");
    }
    const auto order = input->dim_order();
    data.push_back(bytes(step.inputs[index].file));
    tensors.push_back(make_tensor_ptr(
        step.inputs[index].shape,
        data.back().data(),
        {order.begin(), order.end()},
        {},
        input->scalar_type()));
    if (tensors.back()->nbytes() != data.back().size()) {
      throw std::runtime_error("input " + std::to_string(index) + " has other bytes than the program takes");
    }
    values.emplace_back(*tensors.back());
  }
  return values;
}

// Runs the steps of a sample from the program's initial state, and writes what the last of them gives.
void run(const Program& program, const Sample& sample, const fs::path& outputs) {
  Module module(program.file.string(), program.data);
  std::vector<EValue> given;
  std::vector<std::vector<uint8_t>> data;
  std::vector<TensorPtr> tensors;
  for (const auto& step : sample.steps) {
    const auto result = module.execute(step.method, inputs_of(module, step, data, tensors));
    if (!result.ok()) {
      throw std::runtime_error(
          step.method + " ends with error " + std::to_string(static_cast<uint32_t>(result.error())));
    }
    given = result.get();
  }
  fs::create_directories(outputs / sample.folder);
  for (size_t index = 0; index < given.size(); ++index) {
    if (!given[index].isTensor()) {
      throw std::runtime_error("output " + std::to_string(index) + " is no tensor");
    }
    write(given[index].toTensor(), outputs / sample.folder / ("output-" + std::to_string(index)));
  }
}

// Reads the samples whose folders begin with `prefix`, each with its program.
std::vector<std::pair<Program, Sample>> listed(const fs::path& corpus, const std::string& prefix) {
  std::vector<std::pair<Program, Sample>> samples;
  std::ifstream listing(corpus / "replay.txt");
  Program program;
  for (std::string line, word, name, file; std::getline(listing, line);) {
    std::istringstream fields(line);
    fields >> word;
    if (word == "program") {
      fields >> name >> file;
      program = {corpus / file, {}};
    } else if (word == "data") {
      fields >> name >> file;
      program.data.push_back((corpus / file).string());
    } else if (word == "sample") {
      fields >> name;
      samples.push_back({program, {name, {}}});
    } else if (word == "step") {
      fields >> name;
      samples.back().second.steps.push_back({name, {}});
    } else if (word == "input") {
      std::string dtype, shape, order;
      fields >> dtype >> shape >> order >> file;
      samples.back().second.steps.back().inputs.push_back({shape_of(shape), corpus / file});
    }
  }
  const auto left_out = [&](const auto& each) { return each.second.folder.rfind(prefix, 0) != 0; };
  samples.erase(std::remove_if(samples.begin(), samples.end(), left_out), samples.end());
  return samples;
}

} // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: replay CORPUS OUTPUTS [PREFIX]\n";
    return 2;
  }
  const auto samples = listed(argv[1], argc > 3 ? argv[3] : "");
  size_t failed = 0;
  for (const auto& [program, sample] : samples) {
    try {
      run(program, sample, argv[2]);
    } catch (const std::exception& error) {
      std::cerr << sample.folder << ": " << error.what() << "\n";
      ++failed;
    }
  }
  std::cout << samples.size() - failed << " samples ran, " << failed << " did not\n";
  return samples.empty() ? 2 : failed != 0;
}
