"""Trains a small model on a CUDA device from a breccia file: python gpu_check.py [samples].

For a machine with such a device, which the tests do not need. It makes its own file, trains with 0 and with 4
workers, looks where batches lie, and prints samples a second. It ends with 0, or says what failed and ends with 1.
"""
import argparse
import os
import sys
import tempfile
import time

import breccia
import numpy as np
import torch
from breccia.torch import Dataset, IterableDataset, collate
from torch.utils.data import DataLoader

BATCH = 256
FAILED = []


def check(holds, what):
    print(f"{'ok' if holds else 'FAILED'}  {what}")
    if not holds:
        FAILED.append(what)


def make(path, n):
    """Pictures that show their label as a bright bar, and noise."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, n)
    pictures = rng.integers(0, 128, (n, 28, 28), dtype="u1")
    pictures[np.arange(n), 4 + 2 * labels] = 255
    with breccia.open(path, create=True) as repo:
        with repo.session("main", message="pictures") as session:
            session.create_array("images", data=pictures, chunks=(1024, 28, 28))
            session.create_array("labels", data=labels, chunks=(8192,))
    return pictures, labels


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 64), torch.nn.ReLU(),
                               torch.nn.Linear(64, 10)).cuda()


def train(loader, data, epochs):
    """Loss at the begin and the end, labels in their order, samples a second, whether all batches were pinned."""
    net = model()
    step = torch.optim.Adam(net.parameters(), 1e-3)
    losses, labels, pinned = [], [], True
    begin = time.perf_counter()
    for epoch in range(epochs):
        data.set_epoch(epoch)
        for x, y in loader:
            pinned = pinned and x.is_pinned() and y.is_pinned()
            labels.append(y.clone())
            x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
            loss = torch.nn.functional.cross_entropy(net(x.float() / 255), y)
            step.zero_grad()
            loss.backward()
            step.step()
            losses.append(loss.detach())
    torch.cuda.synchronize()
    took = time.perf_counter() - begin
    losses, labels = torch.stack(losses).cpu(), torch.cat(labels)
    return float(losses[:5].mean()), float(losses[-5:].mean()), labels, len(labels) / took, pinned


def only_read(loader):
    begin = time.perf_counter()
    n = sum(len(x.cuda(non_blocking=True)) for x, _ in loader)
    torch.cuda.synchronize()
    return n / (time.perf_counter() - begin)


def on_the_device(loader, pictures, labels):
    """Checks that the written samples arrive there, each once, while pinned memory is used again."""
    got = [(x.cuda(non_blocking=True), y.cuda(non_blocking=True)) for x, y in loader]
    torch.cuda.synchronize()
    x, y = (torch.cat(part).cpu().numpy() for part in zip(*got))
    def order(a, b):
        return np.lexsort((*a.reshape(len(a), -1)[:, :160].T, b))
    there, here = order(x, y), order(pictures, labels)
    return np.array_equal(x[there], pictures[here]) and np.array_equal(y[there], labels[here])


def main(samples):
    if not torch.cuda.is_available():
        print("FAILED  there is no CUDA device that torch can use")
        return 1
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, breccia {breccia.__version__}, "
          f"{samples} samples")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pictures.brc")
        pictures, labels = make(path, samples)
        orders = {}
        # With workers the context of the device is made first, and fork would take it along: spawn.
        for workers, method in (0, None), (4, "spawn"):
            data = IterableDataset(path, ["images", "labels"], batch_size=BATCH, pin_memory=True)
            loader = DataLoader(data, batch_size=None, num_workers=workers, pin_memory=workers > 0,
                                persistent_workers=workers > 0, multiprocessing_context=method)
            check(on_the_device(loader, pictures, labels), f"{workers} workers: the device has what was written")
            first, last, orders[workers], rate, pinned = train(loader, data, 3)
            check(pinned, f"{workers} workers: every batch is in pinned memory")
            check(last < first / 2, f"{workers} workers: the loss falls, from {first:.3f} to {last:.3f}")
            print(f"    {workers} workers: {rate:,.0f} samples a second trained, {only_read(loader):,.0f} only copied")
        check(torch.equal(orders[0], orders[4]), "the order is the same with 0 and with 4 workers")
        own = IterableDataset(path, ["images", "labels"], batch_size=BATCH, pin_memory=True)
        check(next(iter(own))[0].is_pinned(), "without a DataLoader, batches are decoded into pinned memory")
        again = DataLoader(own, batch_size=None, pin_memory=True)
        x = next(iter(again))[0]
        check(x.pin_memory().data_ptr() == x.data_ptr(), "pinning such a batch again copies nothing")
        data = Dataset(path, ["images", "labels"], pin_memory=True)
        x, y = next(iter(DataLoader(data, batch_size=64, shuffle=True, collate_fn=collate)))
        check(x.is_pinned() and y.is_pinned(), "a batch of Dataset is in pinned memory")
        print(f"trained on {data.version}")
    print(f"{len(FAILED)} failed: {'; '.join(FAILED)}" if FAILED else "all good")
    return 1 if FAILED else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("samples", nargs="?", type=int, default=60000)
    sys.exit(main(parser.parse_args().samples))
