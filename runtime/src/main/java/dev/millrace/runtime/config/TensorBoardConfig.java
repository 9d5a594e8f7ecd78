package dev.millrace.runtime.config;

/**
 * TensorBoard's event files of the run's steps.
 *
 * @param directory to which a folder of the run's name is added; what TensorBoard is given as {@code --logdir}. Empty writes none
 */
public record TensorBoardConfig(String directory) {
    public static TensorBoardConfig defaults() {
        return new TensorBoardConfig("");
    }
}
