"""Languages of text search: function words, stems, and words without spaces.

The words of English are stemmed by the engines, in one way everywhere. Other languages add words
to those: a stem beside the word, pairs of characters beside the characters of Chinese and Japanese.
An item that was indexed without them is still found by its words.

Read `languages.py` first, then `variants.py`; `porter.py` has the stems of English. `long_texts.py`
reads the words of long texts in a worker thread. `normal_forms.py` normalises any text, whatever
marks it has, and `whole.py` compares whole words for an erasure.
"""
