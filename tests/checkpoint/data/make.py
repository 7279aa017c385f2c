"""Writes the golden files of this folder with a real torch: python make.py (torch 2.13.0, 2026-11-30).

whole.pt: a training state of model, optimizer, scheduler, step. nocrc.pt: the same, saved with checksums off.
weights.pt: a state_dict. module.pt: a whole module. tensorstep.pt: its step is a tensor; bfloat16, float8 and an
empty tensor. optimizer.pt: an optimizer's state alone. legacy.pt: the format from before 1.6.
"""
import os

import torch

os.chdir(os.path.dirname(os.path.abspath(__file__)))
torch.manual_seed(1)
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.Adam(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
model(torch.ones(2, 4)).sum().backward()
optimizer.step()
whole = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "lr_scheduler": scheduler.state_dict(),
         "global_step": 120, "rng_state": torch.arange(16, dtype=torch.uint8)}
torch.save(whole, "whole.pt")
torch.save(model.state_dict(), "weights.pt")
torch.save(model, "module.pt")
torch.save(optimizer.state_dict(), "optimizer.pt")
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": torch.tensor(77),
            "b": torch.zeros(3, dtype=torch.bfloat16), "f8": torch.zeros(5).to(torch.float8_e4m3fn),
            "e": torch.empty(0)}, "tensorstep.pt")
torch.save({"model": model.state_dict(), "step": 3}, "legacy.pt", _use_new_zipfile_serialization=False)
torch.serialization.set_crc32_options(False)
torch.save(whole, "nocrc.pt")
