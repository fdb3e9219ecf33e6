class ModelCheckpoint:
    def __init__(self, dirpath, every_n_train_steps, save_last):
        assert save_last
        self.dirpath, self.every_n_train_steps = dirpath, every_n_train_steps
