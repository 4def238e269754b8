"""What NLTK's Punkt, trained on real texts, makes of 16,000 texts: punkt.py DATA FOLDER."""
import json, os, random, sys

from nltk.tokenize import punkt

data, folder = sys.argv[1:]
news = []
for name in sorted(os.listdir(data + "/mrpc")):
    for row in open(f"{data}/mrpc/{name}", encoding="utf-8-sig").read().split("\n")[1:]:
        news += row.split("\t")[3:]
files = [open(f"{data}/ewt/{name}.conllu") for name in ("dev", "test")]
mails = [line[9:].rstrip("\n") for file in files for line in file if line.startswith("# text = ")]
plays = open(data + "/tinyshakespeare/input.txt").read().split("\n\n")

trainer = punkt.PunktTrainer()
trainer.INCLUDE_ALL_COLLOCS = True
trainer.train(" ".join(news), finalize=False)
trainer.train(" ".join(mails), finalize=False)
trainer.finalize_training()
learnt = trainer.get_params()
punkt.save_punkt_params(learnt, folder + "/punkt")
tokenizer = punkt.PunktSentenceTokenizer(learnt)


class WhiteBehind(punkt.PunktLanguageVars):
    """As Megatron's preprocess_data.py has it under --keep-newlines: the word before and what is white behind are of the match."""

    _period_context_fmt = r"\S*%(SentEndChars)s\s*(?=(?P<after_tok>%(NonWord)s|(?P<next_tok>\S+)))"


keeping = punkt.PunktSentenceTokenizer(learnt, lang_vars=WhiteBehind())

draws = random.Random(3)
texts = [" ".join(draws.sample(news, draws.randint(2, 6))) for _ in range(3000)]
for _ in range(4000):
    texts.append(draws.choice([" ", "  ", "\n", "\n\n"]).join(draws.sample(mails, draws.randint(2, 7))))
texts += plays[:3000]
marks = "Mr. e.g. J. S. Bach ... ! ? ?! \"He left.\" (see fig. 3.) 3.14 5. -- U.S. it's. 'No.' “Yes.” and The of a.m. , x é. №5."
words = marks.split(" ") + ["\n", ". . ."]
texts += [" ".join(draws.choice(words) for _ in range(draws.randint(3, 25))) for _ in range(4000)]
texts += ["".join(draws.choice(words + [" "] * 20) for _ in range(draws.randint(3, 25))) for _ in range(2000)]
cases = [[text, tokenizer.tokenize(text), keeping.tokenize(text)] for text in texts]
json.dump(cases, open(folder + "/cases.json", "w"))
