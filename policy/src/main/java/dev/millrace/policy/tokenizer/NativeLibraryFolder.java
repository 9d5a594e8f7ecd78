package dev.millrace.policy.tokenizer;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Where the tokenizer library unpacks its native part: in the home folder, or, where that cannot be written, in the temporary one. */
final class NativeLibraryFolder {
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
