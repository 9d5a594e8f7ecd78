package dev.millrace.policy.huggingface;

import java.util.List;

/**
 * A tensor as its file's header describes it.
 *
 * @param file  name of the file within the directory
 * @param type  as the format writes it, such as {@code BF16}
 * @param dims  axis lengths, outermost first
 */
public record StoredTensor(String file, String type, List<Long> dims, long bytes) {
    public StoredTensor {
        dims = List.copyOf(dims);
    }
}
