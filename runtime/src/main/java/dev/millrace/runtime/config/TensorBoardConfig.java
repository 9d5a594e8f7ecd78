package dev.millrace.runtime.config;

/**
 * TensorBoard's event files of the run's steps.
 *
 * @param directory TensorBoard's {@code --logdir}; gets a folder per run; empty for {@code curves} of the run's folder with 'train', else for none
 */
public record TensorBoardConfig(String directory) {
    public static TensorBoardConfig defaults() {
        return new TensorBoardConfig("");
    }
}
