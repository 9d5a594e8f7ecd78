package dev.millrace.policy.tokenizer;

import dev.millrace.api.tokenizer.Tokenizer;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * One token per symbol of a fixed list; the id is its index.
 *
 * <p>Encoding takes the longest symbol that fits at each place, so that {@code "<eos>"} and {@code "<"} can both be
 * symbols.
 */
public final class SymbolTokenizer implements Tokenizer {
    private final List<String> symbols;
    private final Map<String, Integer> ids = new HashMap<>();
    private final int longest;
    private final String hash;

    /** @param symbols at least two, distinct, none empty */
    public SymbolTokenizer(List<String> symbols) {
        if (symbols.size() < 2) {
            throw new IllegalArgumentException("a vocabulary needs at least 2 symbols: " + symbols);
        }
        this.symbols = List.copyOf(symbols);
        for (String symbol : symbols) {
            if (symbol.isEmpty()) {
                throw new IllegalArgumentException("symbol " + ids.size() + " is empty");
            }
            Integer earlier = ids.put(symbol, ids.size());
            if (earlier != null) {
                throw new IllegalArgumentException("symbol '" + symbol + "' is in the list twice, first at " + earlier);
            }
        }
        this.longest = symbols.stream().mapToInt(String::length).max().orElseThrow();
        this.hash = digest(this.symbols);
    }

    public int id(String symbol) {
        Integer id = ids.get(symbol);
        if (id == null) {
            throw new IllegalArgumentException(
                    "'" + symbol + "' is not among the " + symbols.size() + " symbols " + symbols);
        }
        return id;
    }

    @Override
    public int vocabSize() {
        return symbols.size();
    }

    @Override
    public int[] encode(String text) {
        int[] tokens = new int[text.length()];
        int count = 0;
        for (int at = 0; at < text.length(); count++) {
            String symbol = longestAt(text, at);
            tokens[count] = id(symbol);
            at += symbol.length();
        }
        return Arrays.copyOf(tokens, count);
    }

    private String longestAt(String text, int at) {
        for (int length = Math.min(longest, text.length() - at); length > 0; length--) {
            String candidate = text.substring(at, at + length);
            if (ids.containsKey(candidate)) {
                return candidate;
            }
        }
        throw new IllegalArgumentException(
                "no symbol begins at character " + at + " of '" + text + "'; symbols: " + symbols);
    }

    @Override
    public String decode(int[] tokens) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < tokens.length; i++) {
            if (tokens[i] < 0 || tokens[i] >= symbols.size()) {
                throw new IllegalArgumentException(
                        "token " + tokens[i] + " at " + i + " is outside the vocabulary of " + symbols.size());
            }
            text.append(symbols.get(tokens[i]));
        }
        return text.toString();
    }

    @Override
    public String hash() {
        return hash;
    }

    /** Prefixes each symbol with its length, so that different lists hash differently. */
    private static String digest(List<String> symbols) {
        MessageDigest sha256 = DigestUtils.getSha256Digest();
        sha256.update("symbols".getBytes(StandardCharsets.UTF_8));
        for (String symbol : symbols) {
            byte[] bytes = symbol.getBytes(StandardCharsets.UTF_8);
            sha256.update(
                    ByteBuffer.allocate(Integer.BYTES).putInt(bytes.length).flip());
            sha256.update(bytes);
        }
        return HexFormat.of().formatHex(sha256.digest());
    }
}
