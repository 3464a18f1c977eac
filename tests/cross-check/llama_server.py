"""Serves a tiny random model with llama.cpp.

    llama_server.py FOLDER PORT KEY WINDOW

The model has random weights, no attention and a vocabulary of bytes and a few words: each token has one likely successor, which is random
except in the sentences of `SENTENCES`. The chat template chooses a sentence by a mark in the prompt, so that the real server, its parsers
and its grammars work on answers that are known. One character is one token of a prompt.
"""

import pathlib
import sys
import time

import gguf
import numpy
import xllamacpp

END = "<|im_end|>"
RECORD = ["Goal", "Standing requirements", "Decisions", "Done", "Open", "Facts and identifiers", "Dead ends"]
# The last piece of a sentence is followed by the end of the answer, or by itself if it is "...".
SENTENCES = {
    "<|say|>": ["The harbour", " opens", " at dawn 🚢."],
    "<|again|>": ["I said", " so", " before."],
    "<|ponder|>": ["<think>", "Ships sleep.", "</think>", "At noon."],
    "<|babble|>": ["la ", "la la ", "..."],
    "<|calls|>": [
        "<tool_call>",
        '\n{"name": "status", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "records_list", "arguments": {}}\n</tool_call>',
    ],
    "<|record|>": [f"## {title}\nNone.\n" for title in RECORD],
}
WIDTH = 256


def vocabulary():
    """Returns the tokens, and the successor of each that has one."""
    kinds = gguf.TokenType
    tokens = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), (END, kinds.CONTROL), ("<|im_start|>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    successors = {}
    for mark, pieces in SENTENCES.items():
        before = len(tokens)
        tokens.append((mark, kinds.CONTROL))
        for piece in pieces:
            if piece == "...":
                successors[before] = before
                break
            successors[before] = len(tokens)
            before = len(tokens)
            tokens.append((piece, kinds.USER_DEFINED))
        else:
            successors[before] = 2
    return tokens, successors


def write_model(path, window):
    tokens, successors = vocabulary()
    random = numpy.random.default_rng(24)
    count = len(tokens)
    embeddings = random.standard_normal((count, WIDTH)).astype(numpy.float32)
    embeddings /= numpy.linalg.norm(embeddings, axis=1, keepdims=True)
    output = numpy.zeros((count, WIDTH), dtype=numpy.float32)
    for token in range(count):
        # A random byte in printable ASCII follows a byte.
        output[successors.get(token, 4 + int(random.integers(0x61, 0x7A)))] += embeddings[token]

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(window)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // 4)
    writer.add_vocab_size(count)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_scores([0.0] * count)
    writer.add_token_types([int(kind) for _, kind in tokens])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(pathlib.Path(__file__).with_name("chat.jinja").read_text())
    writer.add_tensor("token_embd.weight", embeddings)
    writer.add_tensor("output.weight", output)
    # The scale of the last norm makes the likely successor certain.
    writer.add_tensor("output_norm.weight", numpy.full(WIDTH, 4.0, dtype=numpy.float32))
    for name in ["attn_norm", "ffn_norm"]:
        writer.add_tensor(f"blk.0.{name}.weight", numpy.ones(WIDTH, dtype=numpy.float32))
    for name in ["attn_q", "attn_k", "attn_v", "attn_output"]:
        writer.add_tensor(f"blk.0.{name}.weight", numpy.zeros((WIDTH, WIDTH), dtype=numpy.float32))
    for name, shape in [("ffn_gate", (32, WIDTH)), ("ffn_up", (32, WIDTH)), ("ffn_down", (WIDTH, 32))]:
        writer.add_tensor(f"blk.0.{name}.weight", numpy.zeros(shape, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    folder, port, key, window = pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    path = folder / "tiny.gguf"
    write_model(path, window)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.model_alias = {"tiny"}
    params.n_ctx = window
    params.n_parallel = 1
    params.port = port
    params.api_keys = [key]
    params.endpoint_metrics = True
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
