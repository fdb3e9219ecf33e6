# torchrun, also where PyTorch was built without libuv (as Debian's), for which torchrun asks in vain.
import torch.distributed
from torch.distributed import TCPStore


class Store(TCPStore):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, use_libuv=False, **kwargs)


try:
    TCPStore("127.0.0.1", 0, 1, True)
except RuntimeError:
    torch.distributed.TCPStore = Store
from torch.distributed.run import main  # noqa: E402

main()
