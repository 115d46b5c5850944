"""Bad arguments, files and cells for every command: one clear error, nothing written or charged, no private text."""

import gzip
import json
import shlex
import shutil
from pathlib import Path

import pytest

import dptext
import dptext.errors
from cli.conftest import SECRET
from dptext.cli import main
from dptext.ledger.ledger import Ledger
from reviews import RATINGS, reviews, utterances

USUAL = {
    "A": "advise in.jsonl",
    "S": "synthesize in.jsonl -o out.jsonl --user author_id --epsilon 1 --public pool.txt --features words -n 10",
    "L": "synthesize in.jsonl -o out.jsonl --user author_id --epsilon 1 --public pool.txt --features words -n 10 "
    f"--label rating --labels {RATINGS}",
    "W": "synthesize in.jsonl -o out.jsonl --user author_id --epsilon 1 --public pool.txt --features words -n 10 "
    f"--label rating --labels {RATINGS} --generator ollama:tiny",
    "D": "synthesize --distribution made.jsonl.distribution -o out.jsonl -n 5 --generator ollama:tiny",
    "P": "privatize in.jsonl -o out.jsonl --epsilon 4 --vectors small.txt",
    "B": "privatize in.jsonl -o out.jsonl --epsilon 4 --mechanism bank --bank bank",
    "E": "encode in.jsonl -o out.parquet --epsilon 4 --encoder small.txt",
    "M": "embed in.jsonl -o out --user author_id --epsilon 8 --vectors small.txt",
    "N": "embed in.jsonl -o out --user author_id --vectors small.txt",
    "C": "classify in.jsonl -o labels.jsonl --distribution made.jsonl.distribution",
    "BANK": "bank pool.txt -o new --licence CC0-1.0 --encoder words",
    "R": "report made.jsonl -o page.html --public pool.txt",
}
"""Commands that work; further options make them fail, or another input (``S:broken.jsonl``)."""

CASES = """
advise none.jsonl | 4 | cannot open 'none.jsonl': No such file or directory
advise notes.doc | 2 | expected a file name that ends in .txt, .jsonl, .csv, .tsv, each may be .gz, .zst or .xz;
advise empty.jsonl | 1 | no row of empty.jsonl could be read: check that there are rows, in UTF-8
advise header.csv | 1 | no row of header.csv could be read: check that there are rows, in UTF-8
advise latin.csv | 1 | no row of latin.csv could be read: check that there are rows, in UTF-8
A --text body | 2 | there is no column 'body', but 8 others: 'review_id', 'author_id', 'author', 'email', 'created_at',
A --user writer | 2 | there is no column 'writer', but 8 others: 'review_id', 'author_id', 'author', 'email',
A --label stars | 2 | there is no column 'stars', but 8 others: 'review_id', 'author_id', 'author', 'email',
A --text text --user text | 2 | text, user and label must be different columns
A --purpose reading | 2 | Invalid value for '--purpose': 'reading' is not one of 'read', 'classify', 'vectors',
A --public in.jsonl | 2 | public contains a file of the private rows: name a file of other people's texts
A --public-label topic | 2 | public_label requires public texts: name them too (--public FILE, public=)
A --public public.csv | 1 | public.csv: expected a column 'text', the file has 1 other: 'body'; name the right column
A --public empty.jsonl | 1 | empty.jsonl contains no documents: at least one row is needed
advise | 2 | Missing argument 'IN...'; see: dptext advise --help
synthesize -o out.jsonl | 2 | IN is required; or draw from an earlier release with --distribution FOLDER
S --user writer | 1 | in.jsonl, row 1: expected a column 'writer', the row has 8 others: 'review_id', 'author_id',
S --text body | 1 | in.jsonl, row 1: expected a column 'body', the row has 8 others: 'review_id', 'author_id', 'author',
S --unit document | 2 | --unit document does not protect users: omit --user, or use --unit user
S --epsilon 0 | 2 | epsilon must be a finite number above 0, got 0.0
S --epsilon -1 | 2 | epsilon must be a finite number above 0, got -1.0
S --epsilon nan | 2 | epsilon must be a finite number above 0, got nan
S --epsilon inf | 2 | epsilon must be a finite number above 0, got inf
S --epsilon one | 2 | Invalid value for '--epsilon': Input should be a valid number; see: dptext synthesize --help
S --delta 2 | 2 | delta must be a number above 0 and below 1, got 2.0
S --delta 0 | 2 | delta must be a number above 0 and below 1, got 0.0
S -n 0 | 2 | n must be an integer of at least 1, got 0
S -n 1000000 | 2 | n must be at most the number of texts in the pool, 600, got 1,000,000: request fewer texts, or use a
S --public-users 0 | 2 | Invalid value for '--public-users': Input should be greater than or equal to 1; see: dptext
S --public in.jsonl | 2 | 'in.jsonl' is both a file of IN and of the public texts: private texts would be released
S --public none.txt | 4 | cannot open 'none.txt': No such file or directory
synthesize in.jsonl -o out.jsonl --unit document --epsilon 1 --public empty.txt -n 10 | 1 | empty.txt contains no
S --public public.csv | 1 | public.csv: expected a column 'text', the file has 1 other: 'body'; name the right column
S --features nowhere | 2 | features must be one of both, words, sentences, static, glove, glove-6b-50d,
S --features none.txt | 2 | features must be one of both, words, sentences, static, glove, glove-6b-50d,
S --licence LICENCE | 2 | --licence LICENCE is a placeholder: replace it by the licence of the public texts
S --generator http://localhost:1 | 2 | one model is required: pass model= (--model NAME), or an address like
S --generator localhost --model tiny | 2 | url must be an address such as http://localhost:8080/v1 or
S --model folder | 2 | 'folder' must be a .gguf file, the folder of a model with config.json and *.safetensors, or
S --examples examples.json --candidates 2 | 2 | --examples, --candidates: no effect without a model (--model
S --with-pool --about news | 2 | --about, --with-pool: no effect without a model (--model
S --completions --key KEY | 2 | --completions, --key: no effect without a server (--generator URL)
W --candidates 0 | 2 | Invalid value for '--candidates': Input should be greater than or equal to 1; see: dptext
W --examples none.json | 4 | cannot read 'none.json': No such file or directory
W --examples pool.txt | 1 | pool.txt is not JSON: write {"A": ["a text of label A", ...], "B": ["a
W --examples in.jsonl | 2 | 'in.jsonl' is both a file of IN and of the public texts: private texts would be released
W --examples right.jsonl -o right.jsonl --force | 2 | 'right.jsonl' is the same file as the public texts: choose another
W --examples labels.json | 2 | examples must be lists of texts by label name ('1', '2', '3', '4', '5'), got no label
W --examples stars.json | 2 | examples must be lists of texts by label name ('1', '2', '3', '4', '5'), got 'six'
W --examples blank.json | 2 | the examples of '1' must be a list of non-empty UTF-8 texts
S --label rating | 2 | each --label COLUMN needs its public labels, --labels A,B,... (they are never read from the
S --label rating --labels LABEL1,LABEL2 | 2 | --labels LABEL1,LABEL2 is a placeholder: replace it by the public labels
S --label rating --labels , | 2 | the labels of 'rating' must be texts that UTF-8 can encode, numbers or truth values,
S --label rating --labels 1,1 | 2 | the labels of 'rating' must differ, entry 2 occurs before (1, 1.0 and '1' are one
S --label rating --labels bad,good | 2 | no row of IN has one of the --labels. Nothing was released or charged. Correct
S --label stars --labels 1,2 | 1 | in.jsonl, row 1: expected a column 'stars', the row has 8 others: 'review_id',
S --label text --labels 1,2 | 2 | the column 'text' contains the text and would be released unchanged: name another
L --label rating --labels 1,2 | 2 | --label names a column twice: give all its labels in one list
L --labels-file labels.json | 2 | --labels-file contains all labels: omit --labels, and give at most one --label
S --labels-file none.json | 4 | cannot read 'none.json': No such file or directory
S --labels-file pool.txt | 1 | pool.txt is not JSON: write {"A": "a description of A", "B": "a description of B"} as
S --labels-file number.json | 2 | the labels of 'label' must be a list, got 3
S -o in.jsonl --force | 2 | 'in.jsonl' is the same file as IN: choose another name
S -o made.jsonl | 2 | 'made.jsonl.distribution' already exists, with the distribution that an earlier run released: add
S -o missing/out.jsonl | 4 | cannot write 'missing/out.jsonl': its folder does not exist. Create it first
S -o pool.txt/out.jsonl | 4 | cannot write 'pool.txt/out.jsonl': '
S -o folder | 2 | 'folder' is a folder: choose a file name in it
S -o out.doc | 2 | expected a file name that ends in .txt, .jsonl, .csv, .tsv, each may be .gz, .zst or .xz; .parquet,
S -o out.xlsx | 2 | .xlsx files are only read: end OUT in .txt, .jsonl, .csv (each may be .gz) or .parquet, got
L -o out.txt | 2 | a .txt file cannot have kept columns: write .jsonl or .csv
S --ledger none.ledger | 4 | the ledger 'none.ledger' does not exist. Create it: dptext ledger create none.ledger
S --ledger folder | 4 | 'folder' is a folder. Pass the ledger file in it
S --ledger pool.txt | 1 | pool.txt is not a ledger, or is damaged, or the disk failed (SQLite does not say which). Try
S --ledger spent | 3 | the ledger refuses (nothing was released): 59 of 59 values of 'author_id' would be overspent
S --ledger book --seed 1 | 2 | --ledger charges guarantees, and a seed voids them: omit --seed
S --seed one | 2 | Invalid value for '--seed': Input should be a valid integer; see: dptext synthesize --help
S --resume --distribution folder | 2 | 'folder' contains data other than a distribution of texts, which replacing it
synthesize in.jsonl --user author_id --epsilon 1 --public pool.txt -n 10 | 2 | --out OUT (.jsonl, .csv, .parquet, ...)
synthesize in.jsonl -o out.jsonl --user author_id --public pool.txt -n 10 | 2 | --epsilon is required: run `dptext
synthesize in.jsonl -o out.jsonl --user author_id --epsilon 1 --public pool.txt | 2 | --count N is required: a public
synthesize in.jsonl -o out.jsonl --user author_id --epsilon 1 -n 10 | 2 | --public POOL is required: public texts,
L:- | 2 | --labels are compared with IN in a first pass, which a pipe does not allow: name files as IN, or add
synthesize --distribution bank -o out.jsonl --public pool.txt -n 5 | 1 | bank: distribution.safetensors and privacy.json
synthesize --distribution none -o out.jsonl --public pool.txt -n 5 | 1 | none does not exist: expected a folder written
synthesize --distribution made.jsonl.distribution -o out.jsonl --public pool.txt -n 5 --epsilon 2 | 2 | --epsilon cannot
synthesize --distribution made.jsonl.distribution -o out.jsonl -n 5 | 2 | --public POOL is required (or a model that
D --with-pool | 2 | a pool
D --public pool.txt | 2 | add
D --examples stars.json | 2 | 'six'
synthesize --plan --public pool.txt | 2 | --plan needs a public number of users: --people 1000 (do not count IN)
synthesize --plan --public pool.txt --people 0 | 2 | people must be an integer from 1 to 268,435,456, got 0
synthesize --plan --people 100 | 2 | --plan needs public texts: --public POOL
synthesize in.jsonl in.jsonl -o out.jsonl --user author_id --epsilon 1 --public pool.txt -n 10 | 2 | an input file is
S:gaps.jsonl | 1 | 1 of 198 rows has no usable value in the column 'author_id' (first: gaps.jsonl, row 198). Leave
S:broken.jsonl | 1 | broken.jsonl, row 2: expected a JSON object, the line is not valid JSON; repair it, or copy the
S:latin.csv | 1 | latin.csv, row 1: expected UTF-8, got other bytes; name the encoding (such as --encoding
S:broken.xlsx | 1 | broken.xlsx is not an .xlsx file, or is truncated or damaged. Copy the file again
S:cut.jsonl.gz | 1 | cut.jsonl.gz: the compressed data is broken or ends early. Copy the file again
S:folder | 1 | the folder 'folder' contains no file of a known format: name a file
S:empty.jsonl | 1 | empty.jsonl contains no documents: at least one row is needed
S:numbers.jsonl | 1 | numbers.jsonl, row 1: expected a string in 'text', the value is of type int
P --mechanism tme | 2 | mechanism must be one of 'tem', 'subsetselection', 'madlib', 'mahalanobis', 'santext',
P --mechanism ome | 2 | mechanism must be one of 'tem', 'subsetselection', 'madlib', 'mahalanobis', 'santext',
P --epsilon 0 | 2 | epsilon must be a finite number above 0, got 0.0
P --epsilon nan | 2 | epsilon must be a finite number above 0, got nan
privatize in.jsonl -o out.jsonl | 2 | --epsilon is required: run `dptext advise FILE` to choose a method and an epsilon
P --vectors none.txt | 4 | cannot open 'none.txt': No such file or directory
P --vectors pool.txt | 1 | pool.txt, line 1: expected a word and 1 to 1,000,000 numbers, each after one space, got 0
P --vectors glove-7b | 2 | expected a known name (glove-6b-50d, minilm-words-128d) or a file, got 'glove-7b'
P --limit 0 | 2 | limit must be an integer of at least 2, got 0
P --keep rating --keep stars | 1 | in.jsonl, row 1: expected a column 'stars', the row has 8 others: 'review_id',
P --keep email | 2 | --keep email would be published unchanged next to the private texts, and looks like an identifier:
P --keep text | 2 | the column 'text' contains the text and would be released unchanged: name another column
P --user writer | 1 | in.jsonl, row 1: expected a column 'writer', the row has 8 others: 'review_id', 'author_id',
P --set beta | 2 | --set expects NAME=VALUE, each name once, got 'beta'
P --set gamma=1 | 2 | the mechanism tem has no gamma: --set takes beta, document_epsilon, max_words, metric,
P --set beta=2 | 2 | beta must be a number above 0 and below 1, got 2
P --bank bank | 2 | --bank is for --mechanism bank, not for --mechanism tem: omit it
P --mechanism bank | 2 | --vectors is for word replacement, not for --mechanism bank: omit it
B --bank folder | 1 | folder: config.json is missing. Expected a folder written by dptext bank or TextBank.save
B --bank none | 1 | none does not exist: expected a folder written by dptext bank or TextBank.save
B --unit user | 2 | Invalid value for '--unit': 'user' is not one of 'sentence', 'document'; see
P --processes 0 | 2 | Invalid value for '--processes': Input should be greater than or equal to 1; see: dptext privatize
P --redact-list none.txt | 4 | cannot read 'none.txt': No such file or directory
P --ledger spent | 3 | the ledger refuses (nothing was released): it counts in epsilon, this release in epsilon per unit
P -o in.jsonl --force | 2 | 'in.jsonl' is the same file as IN: choose another name
P -o private.jsonl | 2 | 'private.jsonl' already exists: choose another name, or add --force
P -o missing/out.jsonl | 4 | cannot write 'missing/out.jsonl': its folder does not exist. Create it first
P -o out.doc | 2 | expected a file name that ends in .txt, .jsonl, .csv, .tsv, each may be .gz, .zst or .xz; .parquet,
P -o out.txt --keep rating | 2 | a .txt file cannot have kept columns: write .jsonl or .csv
P --encoding utf-9 | 2 | encoding must be a Python text encoding like windows-1252, got 'utf-9'
P --format .doc | 2 | expected a format of input such as .txt, .jsonl, .csv,
P --on-error ignore | 2 | Invalid value for '--on-error': 'ignore' is not one of 'fail', 'skip'; see: dptext privatize
P --force-it | 2 | No such option: --force-it (Possible options: --force, --format); see: dptext privatize --help
P:broken.xlsx | 1 | broken.xlsx is not an .xlsx file, or is truncated or damaged. Copy the file again
E --mechanism gauss | 2 | No such option: --mechanism; see: dptext encode --help
E --encoder none.txt | 4 | cannot open 'none.txt': No such file or directory
E --epsilon inf | 2 | epsilon must be a number above 0 and at most 500, got inf
E -o out.csv | 2 | vectors are written as parquet: expected a name that ends in .parquet, got 'out.csv'
E -o vectors.parquet | 2 | 'vectors.parquet' already exists: choose another name, or add --force
E --public in.jsonl | 2 | --public 'in.jsonl' is also an input: name public texts of other people
E --keep author_id | 2 | --keep author_id would be published unchanged next to the private texts, and looks like an
E --ledger folder | 4 | 'folder' is a folder. Pass the ledger file in it
E:latin.csv | 1 | latin.csv, row 1: expected UTF-8, got other bytes; name the encoding (such as --encoding
embed in.jsonl -o out --epsilon 8 --vectors small.txt | 2 | --user COLUMN is required: it names the author, whom the
M --user writer | 1 | in.jsonl, row 1: expected a column 'writer', the row has 8 others: 'review_id', 'author_id',
M --epsilon 0 | 2 | epsilon must be a finite number above 0, got 0.0
M --delta 1 | 2 | delta must be a number above 0 and below 1, got 1.0
M --vectors none.txt | 4 | cannot open 'none.txt': No such file or directory
M --unit document | 2 | --unit document does not protect users: omit --user, or use --unit user
M --levels a=1 | 2 | --levels contain the epsilons: omit --epsilon
M --new-words 1 --seed 1 | 2 | --new-words takes no seed: omit --seed
M --new-words 0 | 2 | Invalid value for '--new-words': Input should be greater than or equal to 0.001; see: dptext embed
M -o learned | 2 | 'learned' already exists: choose another name, or replace it (--force, replace=True)
M -o in.jsonl | 2 | 'in.jsonl' already exists: choose another name, or replace it (--force, replace=True)
M -o missing/out | 4 | its folder does not exist. Create it first
M --ledger spent | 3 | the ledger refuses (nothing was released): 59 of 59 values of 'author_id' would be overspent
M --people 10 | 2 | --people and --public are for --plan: add --plan, or omit them
M --method skip-gram --steps 0 | 2 | steps must be an integer from 1 to 1,000,000, got 0
M --method skip-gram --sampling-rate 2 | 2 | sampling_rate must be a number from 1e-09 to 1, got 2.0
M --method skip-gram --checkpoint in.jsonl | 2 | 'in.jsonl' is the same file as IN: choose another name
M --epsilon 0.01 | 2 | the epsilon of everyone is 0.01, below the minimum 0.05: the noise would exceed its contribution.
M --unit pair | 2 | --unit pair is for --method skip-gram: add it, or omit --unit
M --resume --checkpoint c | 2 | --checkpoint, --resume is for --method skip-gram: add it, or omit --checkpoint --resume
N --unit document --new-words 1 | 2 | --epsilon is required: run `dptext advise FILE` to choose a method and an epsilon
N --level language --levels en=1,en=2 | 2 | --levels expects NAME=EPSILON,NAME=EPSILON,... with each name once
N --level language | 2 | --epsilon is required: run `dptext advise FILE` to choose a method and an epsilon
N --levels en | 2 | --level COLUMN and --levels NAME=EPSILON,... must be given together
M --method skip-gram --resume | 2 | --resume needs --checkpoint FILE of the interrupted run
M --method skip-gram --checkpoint c --new-words 1 | 2 | --new-words draws new words in every run: omit --checkpoint
M --method skip-gram --checkpoint c --ledger book | 2 | --ledger charges the users of the final input, and steps before
M --method skip-gram --unit pair --ledger book | 2 | --ledger charges users or documents: omit it with --unit pair
M:gaps.jsonl | 1 | 1 of 198 rows has no usable value in the column 'author_id' (first: gaps.jsonl, row 198). Leave
P:gaps.jsonl --user author_id | 1 | 1 of 198 rows has no usable value in the column 'author_id'
E:gaps.jsonl --user author_id | 1 | 1 of 198 rows has no usable value in the column 'author_id'
M:empty.jsonl | 1 | empty.jsonl contains no documents: at least one row is needed
embed --plan --people 100 --vectors small.txt | 2 | --plan needs public texts that stand for users: --public FILE
C --distribution bank | 1 | bank: distribution.safetensors and privacy.json are missing. Expected a folder written by
C --distribution none | 1 | none does not exist: expected a folder written by dptext synthesize (OUT.distribution) or
C --text body | 1 | in.jsonl, row 1: expected a column 'body', the row has 8 others: 'review_id', 'author_id', 'author',
C --keep stars | 1 | in.jsonl, row 1: expected a column 'stars', the row has 8 others: 'review_id', 'author_id',
C -o in.jsonl --force | 2 | 'in.jsonl' is the same file as IN: choose another name
C:latin.csv | 1 | latin.csv, row 1: expected UTF-8, got other bytes; name the encoding (such as --encoding
BANK -o bank | 2 | 'bank' already exists: choose another name, or replace it (--force, replace=True)
BANK -o folder --force | 2 | 'folder' contains data other than a bank, which replacing it would delete: choose another
BANK -o missing/new | 4 | its folder does not exist. Create it first
BANK --licence LICENCE | 2 | --licence LICENCE is a placeholder: replace it by the licence of the public texts
BANK --encoder nowhere | 2 | features must be one of both, words, sentences, static, glove, glove-6b-50d,
bank none.txt -o new | 4 | cannot open 'none.txt': No such file or directory
bank empty.txt -o new --encoder words | 1 | empty.txt contains no documents: at least one row is needed
calibrate --keep-rate 2 --vectors small.txt | 2 | keep_rate must be a number above 0 and below 1, got 2.0
calibrate --epsilon 0 --vectors small.txt | 2 | epsilon must be a finite number above 0, got 0.0
calibrate --epsilon 1 --keep-rate .5 --vectors small.txt | 2 | give either --epsilon or a target (--keep-rate,
calibrate --mechanism bank --vectors small.txt | 2 | mechanism must be one of 'tem', 'subsetselection', 'madlib',
calibrate --bank folder | 1 | folder: config.json is missing. Expected a folder written by dptext bank or TextBank.save
calibrate --bank bank --keep-rate .5 | 2 | --keep-rate is for word replacement: omit it with --bank
calibrate --bank bank --relinking 2 | 2 | relinking must be a number above 0 and below 1, got 2.0
calibrate --people 5 | 2 | --people is for a bank: add --bank FOLDER
explain none.jsonl | 4 | cannot read 'none.jsonl': there is no such file or folder
explain in.jsonl | 4 | in.jsonl has no privacy statement (in.jsonl.privacy.json), and without it no guarantee is known:
explain folder | 4 | folder has no privacy statement (privacy.json), and without it no guarantee is known: get the
explain number.json | 1 | number.json: this JSON is not a privacy statement
explain changed.jsonl | 1 | changed.jsonl does not match its statement: the SHA-256 digest differs
audit in.jsonl | 4 | in.jsonl has no privacy statement (in.jsonl.privacy.json), and without it no guarantee is known:
audit private.jsonl --vectors other.txt | 1 | the vectors have another fingerprint than the statement's: name
audit private.jsonl --samples 0 | 2 | Invalid value for '--samples': Input should be greater than or equal to 100; see:
audit private.jsonl --bank bank | 2 | private.jsonl contains words drawn by a mechanism: omit --bank
audit made.jsonl --distribution bank | 1 | bank is not the folder of a released distribution: name OUT.distribution
audit made.jsonl --public none.txt | 4 | cannot open 'none.txt': No such file or directory
R --original none.jsonl | 4 | cannot open 'none.jsonl': No such file or directory
R --original in.jsonl --label stars | 2 | a synthetic corpus has only labels (rating): omit other columns
R --original in.jsonl --user writer | 1 | no row could be read; the first error is in.jsonl, row 1: expected a column
R --held-out in.jsonl | 2 | held_out needs original: name both, to compare members with other people
R --rows 0 | 2 | rows must be at least 10, got 0
R -o in.jsonl | 2 | 'in.jsonl' already exists: choose another name, or add --force
R -o missing/page.html | 4 | cannot write 'missing/page.html': its folder does not exist. Create it first
R --card made.jsonl --force | 2 | 'made.jsonl' is the same file as an input: choose another name
R --card page.html | 2 | 'page.html' is the same file as OUT.html: choose another name
report none.jsonl -o page.html | 4 | cannot read 'none.jsonl': there is no such file or folder
report in.jsonl -o page.html | 4 | in.jsonl has no privacy statement (in.jsonl.privacy.json), and without it no
report learned -o page.html | 2 | learned is a folder of dptext: name a private file, or run `dptext audit learned`
report made.jsonl | 2 | Missing option '--out' / '-o'; see: dptext report --help
report private.jsonl -o page.html --original short.jsonl | 1 | private.jsonl must have as many rows as short.jsonl (5),
attack linkage in.jsonl none.jsonl | 4 | cannot open 'none.jsonl': No such file or directory
attack linkage short.jsonl private.jsonl --vectors small.txt | 1 | private.jsonl must have as many rows as short.jsonl
attack recovery in.jsonl in.jsonl | 2 | in.jsonl has no privacy statement: run `dptext attack` with linkage or
attack attribute private.jsonl --label stars | 1 | private.jsonl, row 1: expected a column 'stars', the row has 1 other:
attack membership made.jsonl | 2 | made.jsonl is a synthetic corpus: name its released distribution (OUT.distribution)
attack membership made.jsonl.distribution | 2 | --members FILE (people who are in the release) and --others FILE (people
attack neighbours learned --pairs in.jsonl | 1 | in.jsonl, row 1: expected a column 'secret', the row has 8 others:
attack guess private.jsonl | 2 | No such command 'guess'; see: dptext attack --help
ledger create book --epsilon 3 | 4 | 'book' already exists, and ledgers are never overwritten. Choose another name
ledger create new --epsilon 0 | 2 | epsilon must be a number above 0 and at most 1e+300, got 0.0
ledger create new | 2 | a ledger needs a limit. Pass an epsilon, a number of releases, or both
ledger create new --epsilon 1 --delta 2 | 2 | delta must be a number above 0 and below 1, got 2.0
ledger show none | 4 | the ledger 'none' does not exist. Create it: dptext ledger create none --epsilon 10
ledger show pool.txt | 1 | pool.txt is not a ledger, or is damaged, or the disk failed (SQLite does not say which). Try
ledger void book 3f | 2 | book has no release '3f'. To list them, run dptext ledger show
demo --epsilon 0 --folder new | 2 | epsilon must be a finite number above 0, got 0.0
demo --folder in.jsonl | 2 | 'in.jsonl' is a file: choose another --folder
playground --port 99999 | 2 | port must be from 1024 to 65535, got 99999
playground --port 1 | 2 | port must be from 1024 to 65535, got 1
sythesize in.jsonl | 2 | No such command 'sythesize'. Did you mean 'synthesize'?; see: dptext --help
"""
"""Arguments | exit code | part of the message."""


def arguments_of(line):
    """Return the arguments of a line of `CASES`."""
    first, _, options = line.partition(" ")
    name, _, source = first.partition(":")
    usual = USUAL.get(name, name)
    return shlex.split(f"{usual.replace('in.jsonl', source) if source else usual} {options}")


def _write(path, rows):
    Path(path).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def build(rows=200):
    """Fill the current folder with private rows, public files, releases, ledgers, and broken files."""
    table = reviews(rows)
    every = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    complete = [row | {"text": f"{row['text']} {SECRET}"} for row in every if row["text"] and row["author"]]
    complete = [row for row in complete if len(row["text"]) < 5_000]
    _write("in.jsonl", complete)
    _write("short.jsonl", complete[:5])
    _write("gaps.jsonl", [*complete, {**complete[0], "author_id": None}])
    public = [text for text, _ in utterances()[1:1200:2]]
    Path("pool.txt").write_text("\n".join(public) + "\n")
    Path("public.csv").write_text("body\n" + "\n".join(public) + "\n")
    for name in ("empty.jsonl", "empty.txt"):
        Path(name).touch()
    Path("folder").mkdir()
    Path("folder/notes.md").write_text("mine")
    Path("notes.doc").write_text("mine")
    Path("header.csv").write_text("author_id,text\n")
    Path("latin.csv").write_bytes(f"author_id,text\na1,caf\xe9 {SECRET}\n".encode("latin-1"))
    with open("broken.jsonl", "w") as stream:
        stream.write(json.dumps(complete[0]) + '\n{"text": "' + SECRET + "\n")
    Path("broken.xlsx").write_bytes(b"PK\x03\x04 no workbook")
    Path("cut.jsonl.gz").write_bytes(gzip.compress(Path("in.jsonl").read_bytes())[:-9])
    _write("numbers.jsonl", [{"text": 3, "author_id": "a"}])
    Path("number.json").write_text("3")
    Path("right.jsonl").write_text('{"1": ["Awful."]}')
    Path("stars.json").write_text('{"six": ["Six stars."]}')
    Path("blank.json").write_text('{"1": ["Awful.", " "]}')
    Path("labels.json").write_text(json.dumps(RATINGS.split(",")))
    words = [*dict.fromkeys(word for text in public for word in text.split())][:300]
    points = [[float(n % 7), float(n % 11), float(n % 13), 1.0] for n in range(len(words))]
    vectors = dptext.load_vectors((words, points))
    dptext.save_vectors(vectors, Path("small.txt"))
    dptext.save_vectors(dptext.load_vectors((words, [[1.0, *point[1:]] for point in points])), Path("other.txt"))
    Ledger.create("book", epsilon=50, delta=1e-3)
    Ledger.create("spent", epsilon=1, delta=1e-5)
    for line in (
        "BANK -o bank",
        "L -o made.jsonl --ledger spent",
        "P -o private.jsonl",
        "E -o vectors.parquet",
        "M -o learned",
    ):
        assert main([*arguments_of(line), "-q"]) == 0, line
    for name in ("", ".privacy.json"):
        shutil.copy(f"private.jsonl{name}", f"changed.jsonl{name}")
    with open("changed.jsonl", "a") as stream:
        stream.write("{}\n")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A folder with private rows, public files, releases, ledgers and broken files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("bad"))
        build()
        yield Path()


def test_every_bad_input_gets_one_clear_error_and_changes_nothing(filled, run):
    def tree():
        return {path: path.read_bytes() if path.is_file() else None for path in filled.rglob("*")}

    before, lines = tree(), CASES.strip().split("\n")
    assert len(lines) >= 95
    for line in lines:
        arguments, code, message = line.rsplit(" | ", 2)
        result, out, err = run(*arguments_of(arguments), "-q")
        assert (result, out, err.count("\n"), err[:8]) == (int(code), "", 1, "dptext: "), (line, err)
        assert message in err, (line, err)
        assert tree() == before, line


DOCUMENTS = [dptext.Document(f"tea {SECRET}", user=f"a{n}", label="drinks") for n in range(30)]
CALLS = [
    (lambda: dptext.advise([{"text": SECRET}], purpose="reading"), "purpose must be one of 'read', 'classify'"),
    (lambda: dptext.advise([SECRET]), "a table, or a list of mappings"),
    (lambda: dptext.advise("none.jsonl"), "cannot open 'none.jsonl'"),
    (lambda: dptext.Synthesizer(epsilon=0), "epsilon must be a finite number above 0, got 0"),
    (lambda: dptext.Synthesizer(epsilon="1"), "epsilon must be a finite number above 0"),
    (lambda: dptext.Synthesizer(epsilon=1, unit="person"), "unit must be one of 'user', 'document'"),
    (lambda: dptext.Synthesizer(epsilon=1, features="words").fit(DOCUMENTS, public=[]), "the pool contains no text"),
    (lambda: dptext.Synthesizer(epsilon=1, features="words").fit(DOCUMENTS, public=["tea"]), "texts"),
    (lambda: dptext.TextDistribution.load("none"), "none does not exist"),
    (lambda: dptext.TextDistribution.load("made.jsonl.distribution").sample(["tea"], 5), "n must be"),
    (lambda: dptext.TextBank.load("folder"), "config.json is missing"),
    (lambda: dptext.load_vectors("none.txt"), "cannot open 'none.txt'"),
    (lambda: dptext.TEM("small.txt", epsilon=float("nan")), "epsilon must be a finite number above 0"),
    (lambda: dptext.privatize([SECRET], "tem"), "mechanism must be "),
    (lambda: dptext.privatize([3], dptext.TEM("small.txt", epsilon=1)), "must be"),
    (lambda: dptext.PrivateEncoder("small.txt", epsilon=-1).fit(["tea", "cup"]), "epsilon must be a number above 0"),
    (lambda: dptext.Ledger("none"), "the ledger 'none' does not exist"),
    (lambda: dptext.report("none.jsonl"), "cannot read 'none.jsonl'"),
    (lambda: dptext.PrivacyStatement.from_json(SECRET), "must be JSON"),
]


def test_every_bad_call_gets_one_clear_error(filled):
    for call, message in CALLS:
        with pytest.raises(dptext.errors.DptextError) as caught:
            call()
        text = str(caught.value)
        assert (message in text, SECRET in text, "\n" in text) == (True, False, False), (message, text)
