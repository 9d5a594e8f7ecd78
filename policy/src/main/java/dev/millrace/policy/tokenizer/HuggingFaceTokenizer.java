package dev.millrace.policy.tokenizer;

import ai.djl.huggingface.tokenizers.jni.TokenizersLibrary;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.tokenizer.ChatMessage;
import dev.millrace.api.tokenizer.Conversation;
import dev.millrace.api.tokenizer.Tokenizer;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * A {@code tokenizer.json} read by Hugging Face's own library, with the special tokens that it adds to a text.
 *
 * <p>The model may have more ids than the file has tokens, since their number is often rounded up; these have no text.
 * Texts are never truncated; a text that is too long is refused. The native library is in the jar, and nothing is
 * loaded from elsewhere. It stays loaded until the process ends, since a decode may come at any time.
 */
public final class HuggingFaceTokenizer implements Tokenizer {
    static {
        // before the library's first class is loaded: disables its downloads and telemetry
        setUnlessSet("ai.djl.offline", "true");
        setUnlessSet("OPT_OUT_TRACKING", "true");
        setUnlessSet("RUST_FLAVOR", "cpu");
        NativeLibraryFolder.choose();
    }

    /**
     * The library takes some hundred bytes per character; a longer text is encoded alone. Waits are bounded by running
     * encodings.
     */
    private static final int CHARACTERS_AT_ONCE = 1 << 20;

    private static final Semaphore CHARACTERS = new Semaphore(CHARACTERS_AT_ONCE, true);
    /** Largest number of characters that a normalizer composes to one. */
    private static final int MOST_PUT_TOGETHER = 4;

    private final ai.djl.huggingface.tokenizers.HuggingFaceTokenizer library;
    private final int known;
    private final int vocabSize;
    private final int longestToken;
    private final List<Integer> stopTokens;
    private final String hash;
    private final Optional<ChatTemplate> chat;

    /**
     * @param modelVocabulary number of the model's ids; 0 for the file's number of tokens
     * @param chat how conversations become text; empty if the checkpoint has no template
     * @throws IllegalArgumentException if the file cannot be read as a tokenizer, or has tokens that the model does not know
     */
    public HuggingFaceTokenizer(
            byte[] json, String name, int modelVocabulary, List<Integer> stopTokens, Optional<ChatTemplate> chat) {
        this.chat = chat;
        try {
            this.library = ai.djl.huggingface.tokenizers.HuggingFaceTokenizer.newInstance(
                    new ByteArrayInputStream(json), Map.of("truncation", "false", "padding", "false"));
        } catch (IOException | RuntimeException e) {
            throw new IllegalArgumentException(
                    name + " cannot be read as a tokenizer: " + e.getMessage() + unpacking(e), e);
        } catch (ExceptionInInitializerError e) {
            throw new IllegalArgumentException(
                    "the tokenizer library cannot be loaded, so " + name + " cannot be read: " + e.getCause()
                            + NativeLibraryFolder.remedy(),
                    e);
        } catch (LinkageError e) {
            throw new IllegalArgumentException(
                    "the tokenizer library does not run on this machine (" + System.getProperty("os.name") + " "
                            + System.getProperty("os.arch") + "), so " + name + " cannot be read: " + e.getMessage(),
                    e);
        }
        TokenizerFile file = TokenizerFile.read(json, name);
        this.known = file.highestId() + 1;
        this.longestToken = file.longestToken();
        this.vocabSize = modelVocabulary == 0 ? known : modelVocabulary;
        if (known > vocabSize) {
            throw new IllegalArgumentException(name + " has a token with the id " + (known - 1)
                    + " and the model of config.json knows " + vocabSize
                    + " ids (vocab_size); take the tokenizer that the model was trained with");
        }
        stopTokens.stream()
                .filter(token -> token < 0 || token >= vocabSize)
                .findFirst()
                .ifPresent(token -> {
                    throw new IllegalArgumentException("eos_token_id next to " + name + " is " + token
                            + ", which is not among the " + vocabSize + " tokens of the vocabulary");
                });
        this.stopTokens = List.copyOf(stopTokens);
        this.hash = digest(json, vocabSize);
    }

    /** Adds the cause: the library's own message lacks it. */
    private static String unpacking(Exception e) {
        return String.valueOf(e.getMessage()).contains("native library")
                ? " (" + e.getCause() + ")" + NativeLibraryFolder.remedy()
                : "";
    }

    private static void setUnlessSet(String key, String value) {
        if (System.getProperty(key) == null && System.getenv(key) == null) {
            System.setProperty(key, value);
        }
    }

    @Override
    public int vocabSize() {
        return vocabSize;
    }

    @Override
    public int[] encode(String text) {
        return encode(text, true);
    }

    @Override
    public int[] encode(List<ChatMessage> messages) {
        // the template already writes the first token
        return chat.map(template -> encode(template.render(messages), false))
                .orElseGet(() -> Tokenizer.super.encode(messages));
    }

    @Override
    public String render(Conversation conversation) {
        return chat.map(template -> template.render(conversation))
                .orElseGet(() -> Tokenizer.super.render(conversation));
    }

    @Override
    public int[] encodeRendered(String text) {
        return encode(text, false);
    }

    @Override
    public String chatHash() {
        return chat.map(ChatTemplate::hash).orElse("");
    }

    @Override
    public int mostCharacters(int tokens) {
        return longestToken == 0
                ? Integer.MAX_VALUE
                : Math.toIntExact(Math.min((long) MOST_PUT_TOGETHER * tokens * longestToken, Integer.MAX_VALUE));
    }

    /**
     * Returns ids only: token objects would take more memory than the text, and an allocation failure in native code
     * ends the process.
     */
    private int[] encode(String text, boolean specialTokens) {
        int characters = Math.min(text.length(), CHARACTERS_AT_ONCE);
        CHARACTERS.acquireUninterruptibly(characters);
        try {
            long encoding = TokenizersLibrary.LIB.encode(library.getHandle(), text, specialTokens);
            try {
                return LongStream.of(TokenizersLibrary.LIB.getTokenIds(encoding))
                        .mapToInt(Math::toIntExact)
                        .toArray();
            } finally {
                TokenizersLibrary.LIB.deleteEncoding(encoding);
            }
        } finally {
            CHARACTERS.release(characters);
        }
    }

    @Override
    public String decode(int[] tokens) {
        return decode(tokens, false);
    }

    @Override
    public String text(int[] tokens) {
        return decode(tokens, true);
    }

    private String decode(int[] tokens, boolean withoutSpecial) {
        for (int i = 0; i < tokens.length; i++) {
            if (tokens[i] < 0 || tokens[i] >= vocabSize) {
                throw new IllegalArgumentException(
                        "token " + tokens[i] + " at " + i + " is outside the vocabulary of " + vocabSize);
            }
        }
        long[] ids = IntStream.of(tokens)
                .filter(token -> token < known)
                .asLongStream()
                .toArray();
        return ids.length == 0 ? "" : library.decode(ids, withoutSpecial);
    }

    @Override
    public List<Integer> stopTokens() {
        return stopTokens;
    }

    @Override
    public String hash() {
        return hash;
    }

    private static String digest(byte[] json, int vocabSize) {
        MessageDigest sha256 = DigestUtils.getSha256Digest();
        sha256.update(ByteBuffer.allocate(Integer.BYTES).putInt(vocabSize).flip());
        sha256.update(json);
        return HexFormat.of().formatHex(sha256.digest());
    }

    /**
     * Where the tokenizer library unpacks its native part: in the home folder, or in the temporary one if that is not
     * writable.
     */
    static final class NativeLibraryFolder {
        /** The library's environment variables and system properties for the folder. */
        private static final String KEY = "ENGINE_CACHE_DIR";

        private static final String OLDER_KEY = "DJL_CACHE_DIR";
        private static final String NAME = ".djl.ai";

        private NativeLibraryFolder() {}

        /** Sets the folder before the library's first class is loaded; keeps a user's setting. */
        static void choose() {
            if (isSet(KEY) || isSet(OLDER_KEY) || isWritable(Path.of(System.getProperty("user.home"), NAME))) {
                return;
            }
            String folder = Path.of(System.getProperty("java.io.tmpdir"), NAME).toString();
            System.setProperty(KEY, folder);
            System.setProperty(OLDER_KEY, folder);
        }

        private static boolean isSet(String key) {
            return System.getProperty(key) != null || System.getenv(key) != null;
        }

        /** Writes a test file, since permissions do not show missing folders or full file systems. */
        static boolean isWritable(Path folder) {
            try {
                Files.createDirectories(folder);
                Files.delete(Files.createTempFile(folder, "probe", ""));
                return true;
            } catch (IOException e) {
                return false;
            }
        }

        static String remedy() {
            return "; its native part is unpacked into " + NAME
                    + " of the home folder, or of the temporary folder where the former cannot be"
                    + " written; name another folder with the environment variable " + KEY;
        }
    }

    /**
     * Facts of a {@code tokenizer.json} that the library does not expose.
     *
     * @param longestToken in UTF-16 characters; 0 if a token may represent more text than its own characters, as with
     * fused or dropped unknown ones
     */
    record TokenizerFile(int highestId, int longestToken) {
        /** Normalizers that keep a text's length, or only compose letters and marks. */
        private static final Set<String> KEEPING = Set.of("Prepend", "Replace", "NFC", "Lowercase");

        private static final ObjectMapper JSON = new ObjectMapper();

        static TokenizerFile read(byte[] json, String name) {
            try {
                JsonNode file = JSON.readTree(json);
                int highest = -1;
                int longest = 1;
                for (JsonNode added : file.path("added_tokens")) {
                    highest = Math.max(highest, added.path("id").asInt(-1));
                    longest = Math.max(longest, added.path("content").asText().length());
                }
                JsonNode vocabulary = file.at("/model/vocab");
                for (JsonNode id :
                        vocabulary) { // a unigram model has a list of token and score, in the order of the ids
                    highest = Math.max(highest, id.asInt(-1));
                    longest = Math.max(longest, id.path(0).asText().length());
                }
                for (Iterator<String> token = vocabulary.fieldNames(); token.hasNext(); ) {
                    longest = Math.max(longest, token.next().length());
                }
                return new TokenizerFile(
                        vocabulary.isArray() ? Math.max(highest, vocabulary.size() - 1) : highest,
                        coversAll(file) && isKeeping(file.path("normalizer")) ? longest : 0);
            } catch (IOException e) {
                throw new IllegalArgumentException(name + " is not JSON: " + e.getMessage(), e);
            }
        }

        /** Returns whether every byte of a text is in a token, and no token strips surrounding white space. */
        private static boolean coversAll(JsonNode file) {
            for (JsonNode added : file.path("added_tokens")) {
                if (added.path("lstrip").asBoolean() || added.path("rstrip").asBoolean()) {
                    return false;
                }
            }
            return file.at("/model/byte_fallback").asBoolean()
                    || file.path("pre_tokenizer").findValuesAsText("type").contains("ByteLevel");
        }

        private static boolean isKeeping(JsonNode normalizer) {
            boolean isKeeping = !normalizer.has("type")
                    || KEEPING.contains(normalizer.path("type").asText())
                            && !normalizer.path("pattern").has("Regex")
                            && normalizer.at("/pattern/String").asText().length()
                                    <= normalizer.path("content").asText().length()
                    || normalizer.path("type").asText().equals("Sequence");
            for (JsonNode each : normalizer.path("normalizers")) {
                isKeeping &= isKeeping(each);
            }
            return isKeeping;
        }
    }
}
