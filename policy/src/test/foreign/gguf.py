"""Writes a Hugging Face directory of a small model as GGUF in float32, by the two formats' own descriptions."""
import json, math, os, struct, sys
import numpy as np

def read(directory):
    names = sorted(n for n in os.listdir(directory) if n.endswith('.safetensors'))
    tensors = {}
    for name in names:
        data = open(os.path.join(directory, name), 'rb').read()
        length = struct.unpack('<Q', data[:8])[0]
        for key, e in json.loads(data[8:8 + length]).items():
            if key == '__metadata__':
                continue
            raw = data[8 + length + e['data_offsets'][0]:8 + length + e['data_offsets'][1]]
            if e['dtype'] == 'BF16':
                a = (np.frombuffer(raw, '<u2').astype(np.uint32) << 16).view(np.float32)
            elif e['dtype'] == 'F16':
                a = np.frombuffer(raw, '<f2').astype(np.float32)
            else:
                a = np.frombuffer(raw, '<f4')
            tensors[key] = a.reshape(e['shape'])
    return json.load(open(os.path.join(directory, 'config.json'))), tensors

class Writer:
    def __init__(self):
        self.keys = []; self.tensors = []
    @staticmethod
    def text(s):
        b = s.encode(); return struct.pack('<Q', len(b)) + b
    def key(self, name, kind, value):
        codes = {'u32': (4, '<I'), 'i32': (5, '<i'), 'f32': (6, '<f'), 'bool': (7, '<?')}
        def one(kind, v): return self.text(v) if kind == 'str' else struct.pack(codes[kind][1], v)
        code = lambda kind: 8 if kind == 'str' else codes[kind][0]
        b = self.text(name)
        if isinstance(value, list):
            b += struct.pack('<IIQ', 9, code(kind), len(value)) + b''.join(one(kind, v) for v in value)
        else:
            b += struct.pack('<I', code(kind)) + one(kind, value)
        self.keys.append(b)
    def tensor(self, name, a):
        self.tensors.append((name, np.ascontiguousarray(a, np.float32)))
    def write(self, path):
        infos = b''; data = b''
        for name, a in self.tensors:
            infos += self.text(name) + struct.pack('<I', a.ndim) + b''.join(struct.pack('<Q', d) for d in reversed(a.shape)) + struct.pack('<IQ', 0, len(data))
            data += a.tobytes(); data += b'\0' * (-len(data) % 32)
        head = b'GGUF' + struct.pack('<IQQ', 3, len(self.tensors), len(self.keys)) + b''.join(self.keys) + infos
        open(path, 'wb').write(head + b'\0' * (-len(head) % 32) + data)

def turned(a, heads):
    """Llama's rotary pairs lie side by side in GGUF, half a head apart in Hugging Face's files."""
    return a.reshape(heads, 2, a.shape[0] // heads // 2, *a.shape[1:]).swapaxes(1, 2).reshape(a.shape)

def padded(a):
    """With rows of zeros for the single bytes that llama.cpp's tokenizer wants to have."""
    return np.concatenate([a, np.zeros((257, a.shape[1]), np.float32)])

def convert(directory, path):
    c, t = read(directory)
    arch = {'llama': 'llama', 'mistral': 'llama', 'qwen2': 'qwen2', 'qwen3': 'qwen3', 'qwen3_moe': 'qwen3moe'}[c['model_type']]
    heads = c['num_attention_heads']; kv = c.get('num_key_value_heads') or heads
    head = c.get('head_dim') or c['hidden_size'] // heads
    w = Writer()
    w.key('general.architecture', 'str', arch); w.key('general.name', 'str', 'family'); w.key('general.file_type', 'u32', 0)
    n = arch + '.'
    for k, v in [('block_count', c['num_hidden_layers']), ('context_length', c['max_position_embeddings']), ('embedding_length', c['hidden_size']),
                 ('feed_forward_length', c['intermediate_size']), ('attention.head_count', heads), ('attention.head_count_kv', kv),
                 ('rope.dimension_count', head), ('attention.key_length', head), ('attention.value_length', head), ('vocab_size', c['vocab_size'] + 257)]:
        w.key(n + k, 'u32', v)
    w.key(n + 'attention.layer_norm_rms_epsilon', 'f32', c['rms_norm_eps'])
    rope = c.get('rope_parameters') or {}; scaling = c.get('rope_scaling') or rope or {}
    theta = c.get('rope_theta') or rope.get('rope_theta')
    w.key(n + 'rope.freq_base', 'f32', float(theta))
    kind = scaling.get('rope_type') or scaling.get('type')
    if kind == 'linear':
        w.key(n + 'rope.scaling.type', 'str', 'linear'); w.key(n + 'rope.scaling.factor', 'f32', scaling['factor'])
    elif kind == 'yarn':
        w.key(n + 'rope.scaling.type', 'str', 'yarn'); w.key(n + 'rope.scaling.factor', 'f32', scaling['factor'])
        w.key(n + 'rope.scaling.original_context_length', 'u32', scaling['original_max_position_embeddings'])
        for ours, theirs in [('beta_fast', 'yarn_beta_fast'), ('beta_slow', 'yarn_beta_slow')]:
            if ours in scaling: w.key(n + 'rope.scaling.' + theirs, 'f32', float(scaling[ours]))
    elif kind == 'llama3':
        out = []
        for i in range(0, head, 2):
            f = 1 / theta ** (i / head); wave = 2 * math.pi / f; old = scaling['original_max_position_embeddings']
            low = scaling['low_freq_factor']; high = scaling['high_freq_factor']
            if wave < old / high: out.append(1.0)
            elif wave > old / low: out.append(scaling['factor'])
            else:
                s = (old / wave - low) / (high - low); out.append(1 / ((1 - s) / scaling['factor'] + s))
        w.tensor('rope_freqs.weight', np.array(out))
    if arch == 'qwen3moe':
        w.key(n + 'expert_count', 'u32', c['num_experts']); w.key(n + 'expert_used_count', 'u32', c['num_experts_per_tok'])
        w.key(n + 'expert_feed_forward_length', 'u32', c['moe_intermediate_size'])
    v = c['vocab_size']
    w.key('tokenizer.ggml.model', 'str', 'llama')
    w.key('tokenizer.ggml.tokens', 'str', ['<unk>', '<s>', '</s>'] + ['t%d' % i for i in range(3, v)] + ['<0x%02X>' % i for i in range(256)] + ['\u2581'])
    w.key('tokenizer.ggml.scores', 'f32', [0.0] * (v + 257)); w.key('tokenizer.ggml.token_type', 'i32', [2, 3, 3] + [1] * (v - 3) + [6] * 256 + [1])
    w.key('tokenizer.ggml.bos_token_id', 'u32', 1); w.key('tokenizer.ggml.eos_token_id', 'u32', 2)
    w.tensor('token_embd.weight', padded(t['model.embed_tokens.weight'])); w.tensor('output_norm.weight', t['model.norm.weight'])
    if 'lm_head.weight' in t: w.tensor('output.weight', padded(t['lm_head.weight']))
    used = 2 + ('lm_head.weight' in t)
    for i in range(c['num_hidden_layers']):
        p = f'model.layers.{i}.'; b = f'blk.{i}.'
        for ours, theirs in [('input_layernorm', 'attn_norm'), ('post_attention_layernorm', 'ffn_norm'), ('self_attn.q_proj', 'attn_q'), ('self_attn.k_proj', 'attn_k'),
                             ('self_attn.v_proj', 'attn_v'), ('self_attn.o_proj', 'attn_output'), ('mlp.gate_proj', 'ffn_gate'), ('mlp.up_proj', 'ffn_up'),
                             ('mlp.down_proj', 'ffn_down'), ('self_attn.q_norm', 'attn_q_norm'), ('self_attn.k_norm', 'attn_k_norm'), ('mlp.gate', 'ffn_gate_inp')]:
            for part in ('weight', 'bias'):
                a = t.get(p + ours + '.' + part)
                if a is not None:
                    if arch == 'llama' and theirs in ('attn_q', 'attn_k'): a = turned(a, heads if theirs == 'attn_q' else kv)
                    w.tensor(b + theirs + '.' + part, a); used += 1
        if arch == 'qwen3moe':
            for kind in ('gate', 'up', 'down'):
                w.tensor(b + f'ffn_{kind}_exps.weight', np.stack([t[p + f'mlp.experts.{e}.{kind}_proj.weight'] for e in range(c['num_experts'])])); used += c['num_experts']
    assert used == len(t), (used, sorted(t))
    w.write(path)

if __name__ == '__main__':
    convert(sys.argv[1], sys.argv[2])
