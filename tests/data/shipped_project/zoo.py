"""The firm's zoo: its network, quantized with the release's own observers, as `build.py` does it."""

from net import net

from executorch_goldens import Data, Example, case


@case(guards="the program that ships", quantization="histogram")
def firm(data: Data) -> Example:
    model, inputs = net()
    return Example(model, inputs, fill=False)
