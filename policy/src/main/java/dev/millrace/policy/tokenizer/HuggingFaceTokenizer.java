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
 * A {@code tokenizer.json} read by Hugging Face's own library, with the special tokens that it puts around a text.
 *
 * <p>The model may know more ids than the file has tokens for, since their number is often rounded up; these stand for
 * no text. Texts are never truncated; a text that is too long is refused. The native library is in the jar, and nothing
 * is loaded from elsewhere. It stays loaded until the process ends, since a decode may come at any time.
 */
public final class HuggingFaceTokenizer implements Tokenizer {
    static {
        // before the library's first class is loaded: no look for another build on the network, no call home
        setUnlessSet("ai.djl.offline", "true");
        setUnlessSet("OPT_OUT_TRACKING", "true");
        setUnlessSet("RUST_FLAVOR", "cpu");
        NativeLibraryFolder.choose();
    }

    /** The library takes some hundred bytes for each; a text that is longer is alone. Who waits waits for encodings alone, which all end. */
    private static final int CHARACTERS_AT_ONCE = 1 << 20;

    private static final Semaphore CHARACTERS = new Semaphore(CHARACTERS_AT_ONCE, true);
    /** A letter and its marks that a normalizer puts together. */
    private static final int MOST_PUT_TOGETHER = 4;

    private final ai.djl.huggingface.tokenizers.HuggingFaceTokenizer library;
    private final int known;
    private final int vocabSize;
    private final int longestToken;
    private final List<Integer> stopTokens;
    private final String hash;
    private final Optional<ChatTemplate> chat;

    /**
     * @param json the bytes of the file
     * @param name of the file, for a sentence
     * @param modelVocabulary how many ids the model knows; 0 for as many as the file has tokens
     * @param stopTokens that end a text
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
                    throw new IllegalArgumentException("eos_token_id beside " + name + " is " + token
                            + ", which is not among the " + vocabSize + " tokens of the vocabulary");
                });
        this.stopTokens = List.copyOf(stopTokens);
        this.hash = digest(json, vocabSize);
    }

    /** The library says what it could not do and not where; the reason lies beneath. */
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
        // the template writes the first token itself where the model wants one, and a second one would be another
        // prompt
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

    /** Ids alone: an object of each token would take more memory than the text, and where that ends in native code, the process ends. */
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

    /** Where the tokenizer library unpacks its native part: in the home folder, or, where that cannot be written, in the temporary one. */
    static final class NativeLibraryFolder {
        /** The library's own names of the folder, as environment variables or system properties. */
        private static final String KEY = "ENGINE_CACHE_DIR";

        private static final String OLDER_KEY = "DJL_CACHE_DIR";
        private static final String NAME = ".djl.ai";

        private NativeLibraryFolder() {}

        /** Decides it, before the library's first class is loaded; what somebody set stays. */
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

        /** Tried, since permissions do not tell of folders that are not there or lie on a file system without room. */
        static boolean isWritable(Path folder) {
            try {
                Files.createDirectories(folder);
                Files.delete(Files.createTempFile(folder, "probe", ""));
                return true;
            } catch (IOException e) {
                return false;
            }
        }

        /** What to do where it did not work, as the end of a sentence. */
        static String remedy() {
            return "; its native part is unpacked into " + NAME
                    + " of the home folder, or of the temporary folder where the former cannot be"
                    + " written; name another folder with the environment variable " + KEY;
        }
    }

    /**
     * What the library does not tell of a {@code tokenizer.json}.
     *
     * @param highestId that has a token
     * @param longestToken in UTF-16 characters; 0 where a token may stand for more of a text than its own characters, as where unknown ones are put
     *     together or left out
     */
    record TokenizerFile(int highestId, int longestToken) {
        /** Those that leave a text as long as it was, or shorter by letters and their marks that are put together. */
        private static final Set<String> KEEPING = Set.of("Prepend", "Replace", "NFC", "Lowercase");

        private static final ObjectMapper JSON = new ObjectMapper();

        /** @param name of the file, for a sentence */
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

        /** Whether each byte of a text is in a token, and no token strips the white space around it. */
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
