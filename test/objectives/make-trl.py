"""Writes what TRL's trainers compute of given log-probabilities, logits and rewards, for the tests of objectives.

    python test/objectives/make-trl.py test/objectives/trl.json

Wants torch and trl. The losses are computed by the trainers' own methods, in float64, with a model that returns given logits; with
each loss is its gradient by what it was given. TRL 1.13 has no PPO.
"""

import json
import sys
from collections import defaultdict
from types import SimpleNamespace

import torch
import trl
from trl.experimental.gkd.gkd_trainer import GKDTrainer
from trl.experimental.orpo.orpo_trainer import ORPOTrainer
from trl.rewards import get_soft_overlong_punishment
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.kto_trainer import KTOTrainer
from trl.trainer.reward_trainer import RewardTrainer
from trl.trainer.rloo_trainer import RLOOTrainer
from trl.trainer.utils import selective_log_softmax

torch.manual_seed(7)
torch.set_default_dtype(torch.float64)


def accelerator():
    same = lambda value, **_: value
    return SimpleNamespace(
        device="cpu", num_processes=1, process_index=0, gather=same, gather_for_metrics=same, reduce=same, unwrap_model=same
    )


def trainer(**fields):
    """What a trainer's method reads of its trainer."""
    return SimpleNamespace(
        accelerator=accelerator(),
        model=SimpleNamespace(training=True),
        _metrics=defaultdict(lambda: defaultdict(list)),
        _total_train_tokens=0,
        _tp_size=1,
        aux_loss_enabled=False,
        **fields,
    )


def randn(*shape):
    """Few digits, so that the file is small."""
    return torch.randn(*shape).round(decimals=2)


def negative(*shape):
    return (-3 * torch.rand(*shape) - 0.1).round(decimals=2)


def rows(tensor):
    return (tensor.detach().round(decimals=10) if tensor.is_floating_point() else tensor).tolist()


def differentiated(loss, leaf):
    (gradient,) = torch.autograd.grad(loss, leaf)
    return {"loss": loss.item(), "gradient": rows(gradient)}


def texts(num, length, words):
    """Tokens, where each text's answer begins and ends, and logits of two models."""
    tokens = torch.randint(words, (num, length))
    mask = torch.zeros(num, length, dtype=torch.long)
    for row in range(num):
        first = int(torch.randint(1, length // 2, ()))
        last = int(torch.randint(first + 2, length, ()))
        mask[row, first:last] = 1
    return tokens, mask, 2 * randn(num, length, words), 2 * randn(num, length, words)


def preferences():
    cases = []
    for loss_type, beta in [("sigmoid", 0.1), ("sigmoid", 0.5), ("ipo", 0.1), ("ipo", 0.7)]:
        tokens, mask, policy, reference = texts(4, 8, 5)
        leaf = policy.requires_grad_()
        self = trainer(
            precompute_ref_logps=False,
            ref_model=lambda **_: SimpleNamespace(logits=reference),
            ld_alpha=None,
            args=SimpleNamespace(gradient_checkpointing_kwargs=None),
            f_divergence_type="reverse_kl",
            loss_types=[loss_type],
            loss_weights=[1.0],
            beta=beta,
            label_smoothing=0.0,
            use_weighting=False,
        )
        self.model.is_gradient_checkpointing = False
        model = lambda **_: SimpleNamespace(logits=leaf)
        given = dict(input_ids=tokens, completion_mask=mask, attention_mask=torch.ones_like(mask))
        loss = DPOTrainer._compute_loss(self, model, given, False)
        cases.append(
            dict(kind=loss_type, beta=beta, tokens=rows(tokens), mask=rows(mask), policy=rows(policy), reference=rows(reference), **differentiated(loss, leaf))
        )
    return cases


def kto():
    cases = []
    for weights, beta, shift in [((1.0, 1.0), 0.1, 0.0), ((1.33, 0.7), 0.3, 2.0)]:
        tokens, mask, policy, reference = texts(6, 8, 5)
        leaf = policy.requires_grad_()
        isGood = torch.tensor([1, 0, 1, 1, 0, 0])
        ofOthers = randn(6) + shift
        told_kl = iter([ofOthers, torch.zeros(6)])
        self = trainer(
            precompute_ref_logps=False,
            ref_model=lambda **_: SimpleNamespace(logits=reference),
            calculate_KL=True,
            _compute_kl_logps=lambda *_: next(told_kl),
            args=SimpleNamespace(gradient_checkpointing_kwargs=None),
            loss_type="kto",
            beta=beta,
            desirable_weight=weights[0],
            undesirable_weight=weights[1],
        )
        self.model.is_gradient_checkpointing = False
        model = lambda **_: SimpleNamespace(logits=leaf)
        given = dict(input_ids=tokens, completion_mask=mask, attention_mask=torch.ones_like(mask), label=isGood)
        loss = KTOTrainer._compute_loss(self, model, given, False)
        cases.append(
            dict(beta=beta, weights=weights, isGood=rows(isGood), ofOthers=rows(ofOthers), tokens=rows(tokens), mask=rows(mask), policy=rows(policy), reference=rows(reference), **differentiated(loss, leaf))
        )
    return cases


def orpo():
    # The odds are computed in float32.
    chosen = negative(6).requires_grad_()
    rejected = negative(6)
    losses, *_ = ORPOTrainer.odds_ratio_loss(trainer(beta=0.25), chosen, rejected)
    return dict(chosen=rows(chosen), rejected=rows(rejected), beta=0.25, **differentiated(-losses.mean(), chosen))


def reward_model():
    cases = []
    for margin in [None, randn(5).abs()]:
        rewards = randn(10, 1).requires_grad_()
        self = trainer(args=SimpleNamespace(center_rewards_coefficient=None))
        given = dict(attention_mask=torch.ones(10, 3), **({} if margin is None else dict(margin=margin)))
        loss = RewardTrainer.compute_loss(self, lambda **_: SimpleNamespace(logits=rewards), given)
        cases.append(dict(rewards=rows(rewards.squeeze(-1)), margins=margin if margin is None else rows(margin), loss=loss.item()))
    return cases


def policies():
    settings = [
        dict(loss_type="grpo"),
        dict(loss_type="grpo", beta=0.04),
        dict(loss_type="dapo", epsilon_high=0.28),
        dict(loss_type="dr_grpo"),
        dict(loss_type="grpo", importance_sampling_level="sequence"),
        dict(loss_type="grpo", delta=1.5),
        dict(loss_type="grpo", isOld=False, beta=0.1),
    ]
    cases = []
    for setting in settings:
        mask = torch.zeros(6, 8, dtype=torch.long)
        for row, length in enumerate([8, 3, 5, 8, 1, 6]):
            mask[row, :length] = 1
        logProbs = negative(6, 8).requires_grad_()
        old = logProbs.detach() + 0.4 * randn(6, 8)
        reference = logProbs.detach() + 0.5 * randn(6, 8)
        advantages = randn(6)
        isOld = setting.get("isOld", True)
        self = trainer(
            _get_per_token_logps_and_entropies=lambda *_, **__: (logProbs, torch.zeros(6, 8), None),
            top_entropy_quantile=1.0,
            off_policy_mask_threshold=None,
            importance_sampling_level=setting.get("importance_sampling_level", "token"),
            beta=setting.get("beta", 0.0),
            loss_type=setting["loss_type"],
            epsilon_low=0.2,
            epsilon_high=setting.get("epsilon_high", 0.2),
            max_completion_length=10,
            use_vllm=False,
            current_gradient_accumulation_steps=1,
            _entropy_bonus_enabled=False,
            args=SimpleNamespace(delta=setting.get("delta"), use_bias_correction_kl=False, steps_per_generation=1),
        )
        given = dict(
            prompt_ids=torch.zeros(6, 1, dtype=torch.long),
            prompt_mask=torch.ones(6, 1, dtype=torch.long),
            completion_ids=torch.zeros(6, 8, dtype=torch.long),
            completion_mask=mask,
            advantages=advantages,
            ref_per_token_logps=reference,
            num_items_in_batch=mask.sum(),
            **(dict(old_per_token_logps=old) if isOld else {}),
        )
        loss = GRPOTrainer._compute_loss(self, None, given)
        cases.append(
            dict(setting=setting, mask=rows(mask), logProbs=rows(logProbs), old=rows(old), reference=rows(reference), advantages=rows(advantages), **differentiated(loss, logProbs))
        )
    return cases


def rloo():
    mask = torch.zeros(4, 6, dtype=torch.long)
    for row, length in enumerate([6, 2, 4, 1]):
        mask[row, :length] = 1
    logProbs = negative(4, 6).requires_grad_()
    oldTokens = logProbs.detach() + 0.1 * randn(4, 6)
    advantages = randn(4)
    self = trainer(
        _get_per_token_logps_and_entropies=lambda *_, **__: (logProbs, torch.zeros(4, 6), None),
        epsilon_low=0.2,
        epsilon_high=0.2,
        beta=0.0,
    )
    given = dict(
        prompt_ids=torch.zeros(4, 1, dtype=torch.long),
        prompt_mask=torch.ones(4, 1, dtype=torch.long),
        completion_ids=torch.zeros(4, 6, dtype=torch.long),
        completion_mask=mask,
        advantages=advantages,
        old_logps=(oldTokens * mask).sum(1),
    )
    loss = RLOOTrainer._compute_loss(self, None, given)
    return dict(mask=rows(mask), logProbs=rows(logProbs), old=rows(oldTokens), advantages=rows(advantages), **differentiated(loss, logProbs))


def distillation():
    cases = []
    for beta, temperature in [(0, 1.0), (1, 1.0), (0.5, 1.0), (0.2, 0.7), (0, 2.0)]:
        labels, mask, student, teacher = texts(3, 6, 5)
        leaf = student.requires_grad_()
        loss = GKDTrainer.generalized_jsd_loss(leaf, teacher, labels.masked_fill(mask == 0, -100), beta, temperature)
        cases.append(dict(beta=beta, temperature=temperature, mask=rows(mask), student=rows(student), teacher=rows(teacher), **differentiated(loss, leaf)))
    return cases


def log_probs():
    tokens, _, logits, _ = texts(2, 4, 5)
    leaf = logits.requires_grad_()
    found = selective_log_softmax(leaf, tokens)
    return dict(tokens=rows(tokens), logits=rows(logits), logProbs=rows(found), **differentiated(found.sum(), leaf))


def overlong():
    lengths = [10, 79, 80, 81, 90, 99, 100, 101, 140]
    penalty = get_soft_overlong_punishment(max_completion_len=100, soft_punish_cache=20)
    return dict(lengths=lengths, penalties=penalty(completion_ids=[[0] * length for length in lengths]))


(target,) = sys.argv[1:]
cases = dict(
    trl=trl.__version__,
    torch=torch.__version__,
    logProbs=log_probs(),
    preferences=preferences(),
    kto=kto(),
    orpo=orpo(),
    rewardModel=reward_model(),
    policies=policies(),
    rloo=rloo(),
    distillation=distillation(),
    overlong=overlong(),
)
with open(target, "w") as file:
    json.dump(cases, file, separators=(",", ":"))
    file.write("\n")
