SELECT id FROM labels WHERE obj_count < 4
