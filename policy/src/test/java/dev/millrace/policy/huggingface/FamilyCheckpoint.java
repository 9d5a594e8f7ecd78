package dev.millrace.policy.huggingface;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/**
 * A small random checkpoint in the files that a family's are published in, written by the format's own description and by nothing of
 * ours: {@code config.json}, shards and their index.
 *
 * @param config  {@code config.json}
 * @param dtype   F32, BF16 or F16; every value is one that the type has exactly
 * @param shards  files; one has no index
 * @param tensors by name, row-major
 */
record FamilyCheckpoint(JsonNode config, String dtype, int shards, Map<String, double[]> tensors) {
    private static final ObjectMapper JSON = new ObjectMapper();

    static FamilyCheckpoint random(String config, String dtype, int shards, long seed) {
        try {
            JsonNode json = JSON.readTree(config);
            SplittableRandom random = new SplittableRandom(seed);
            Map<String, double[]> tensors = new LinkedHashMap<>();
            dims(json).forEach((name, dims) -> tensors.put(name, values(random, dtype, name, dims)));
            return new FamilyCheckpoint(json, dtype, shards, tensors);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Every tensor that the family's models have, as their authors' code declares them. */
    static Map<String, int[]> dims(JsonNode json) {
        String type = json.get("model_type").asText();
        int hidden = json.get("hidden_size").asInt();
        int heads = json.get("num_attention_heads").asInt();
        int keyHeads = json.path("num_key_value_heads").asInt(heads);
        int head = json.path("head_dim").asInt(hidden / heads);
        int wide = json.get("intermediate_size").asInt();
        int vocabulary = json.get("vocab_size").asInt();
        boolean outputBias = json.path("attention_bias").asBoolean(false);
        boolean inputBias = outputBias || type.equals("qwen2");
        boolean mlpBias = json.path("mlp_bias").asBoolean(false);
        Map<String, int[]> dims = new LinkedHashMap<>();
        if (!json.path("tie_word_embeddings").asBoolean(false)) {
            dims.put("lm_head.weight", new int[] {vocabulary, hidden});
        }
        dims.put("model.embed_tokens.weight", new int[] {vocabulary, hidden});
        for (int layer = 0; layer < json.get("num_hidden_layers").asInt(); layer++) {
            String prefix = "model.layers." + layer + ".";
            dims.put(prefix + "input_layernorm.weight", new int[] {hidden});
            if (type.equals("qwen3_moe")) {
                int experts = json.get("num_experts").asInt();
                int narrow = json.get("moe_intermediate_size").asInt();
                for (int expert = 0; expert < experts; expert++) {
                    String of = prefix + "mlp.experts." + expert + ".";
                    linear(dims, of + "down_proj", hidden, narrow, false);
                    linear(dims, of + "gate_proj", narrow, hidden, false);
                    linear(dims, of + "up_proj", narrow, hidden, false);
                }
                linear(dims, prefix + "mlp.gate", experts, hidden, false);
            } else {
                linear(dims, prefix + "mlp.down_proj", hidden, wide, mlpBias);
                linear(dims, prefix + "mlp.gate_proj", wide, hidden, mlpBias);
                linear(dims, prefix + "mlp.up_proj", wide, hidden, mlpBias);
            }
            dims.put(prefix + "post_attention_layernorm.weight", new int[] {hidden});
            if (type.startsWith("qwen3")) {
                dims.put(prefix + "self_attn.k_norm.weight", new int[] {head});
                dims.put(prefix + "self_attn.q_norm.weight", new int[] {head});
            }
            linear(dims, prefix + "self_attn.k_proj", keyHeads * head, hidden, inputBias);
            linear(dims, prefix + "self_attn.o_proj", hidden, heads * head, outputBias);
            linear(dims, prefix + "self_attn.q_proj", heads * head, hidden, inputBias);
            linear(dims, prefix + "self_attn.v_proj", keyHeads * head, hidden, inputBias);
        }
        dims.put("model.norm.weight", new int[] {hidden});
        return dims;
    }

    private static void linear(Map<String, int[]> dims, String name, int out, int in, boolean biased) {
        if (biased) {
            dims.put(name + ".bias", new int[] {out});
        }
        dims.put(name + ".weight", new int[] {out, in});
    }

    /** {@code ±(1 + m/2^bits) 2^e}: norms around 1, matrices about {@code 1/sqrt(in)}, embeddings about 1. */
    private static double[] values(SplittableRandom random, String dtype, String name, int[] dims) {
        int bits = dtype.equals("F32") ? 23 : dtype.equals("F16") ? 10 : 7;
        boolean norm = name.endsWith("norm.weight");
        boolean embedding = name.equals("model.embed_tokens.weight");
        int size = dims.length == 2 ? dims[0] * dims[1] : dims[0];
        double[] values = new double[size];
        for (int i = 0; i < size; i++) {
            int exponent =
                    norm || embedding ? 0 : dims.length == 1 ? -3 : (int) -Math.round(Math.log(dims[1]) / Math.log(4));
            double magnitude = Math.scalb(
                    1 + random.nextInt(1 << bits) / (double) (1 << bits), exponent - random.nextInt(norm ? 2 : 3));
            values[i] = norm || random.nextBoolean() ? magnitude : -magnitude;
        }
        return values;
    }

    void write(Path directory) throws IOException {
        Files.createDirectories(directory);
        Files.writeString(directory.resolve("config.json"), config.toPrettyString());
        List<String> names = new ArrayList<>(tensors.keySet());
        ObjectNode index = JSON.createObjectNode();
        ObjectNode map = index.putObject("weight_map");
        int written = 0;
        for (int shard = 0; shard < shards; shard++) {
            List<String> part = names.subList(shard * names.size() / shards, (shard + 1) * names.size() / shards);
            String file =
                    shards == 1 ? "model.safetensors" : "model-%05d-of-%05d.safetensors".formatted(shard + 1, shards);
            part.forEach(name -> map.put(name, file));
            written += shard(directory.resolve(file), part);
        }
        if (shards > 1) {
            index.putObject("metadata").put("total_size", written);
            Files.writeString(directory.resolve("model.safetensors.index.json"), index.toPrettyString());
        }
    }

    private int shard(Path path, List<String> names) throws IOException {
        ObjectNode header = JSON.createObjectNode();
        header.putObject("__metadata__").put("format", "pt");
        ByteBuffer data = ByteBuffer.allocate(1 << 20).order(ByteOrder.LITTLE_ENDIAN);
        Map<String, int[]> dims = dims(config);
        for (String name : names) {
            int begin = data.position();
            for (double value : tensors.get(name)) {
                put(data, value);
            }
            ObjectNode entry = header.putObject(name).put("dtype", dtype);
            for (int dim : dims.get(name)) {
                entry.withArray("shape").add(dim);
            }
            entry.putArray("data_offsets").add(begin).add(data.position());
        }
        byte[] json = header.toString().getBytes(StandardCharsets.UTF_8);
        ByteBuffer file = ByteBuffer.allocate(8 + json.length + data.position()).order(ByteOrder.LITTLE_ENDIAN);
        file.putLong(json.length).put(json).put(data.array(), 0, data.position());
        Files.write(path, file.array());
        return data.position();
    }

    private void put(ByteBuffer data, double value) {
        switch (dtype) {
            case "F32" -> data.putFloat((float) value);
            case "BF16" -> data.putShort((short) (Float.floatToIntBits((float) value) >>> 16));
            default -> {
                int exponent = Math.getExponent(value);
                int fraction = (int) Math.round((Math.abs(value) / Math.scalb(1.0, exponent) - 1) * 1024);
                data.putShort((short) ((value < 0 ? 0x8000 : 0) | exponent + 15 << 10 | fraction));
            }
        }
    }
}
